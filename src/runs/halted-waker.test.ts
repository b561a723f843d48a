import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../test/kit/app.ts'
import { insertProject, insertRuns } from '../../test/kit/runs.ts'
import type { Db } from '../db/pool.ts'
import { setHalted } from '../identity/projects.ts'
import { createJournal } from '../journal/append.ts'
import { type Log, silentLog } from '../kernel/log.ts'
import { systemActor } from '../kernel/principal.ts'
import { createHaltedWaker } from './halted-waker.ts'
import { createRecovery } from './recover-runs.ts'

const kit = await createTestApp()
const { pool } = kit

async function haltedRuns(count: number, owner = insertProject(pool)): Promise<{ projectId: string; ids: string[] }> {
  const projectId = await owner
  const ids = await insertRuns(pool, projectId, count)
  await pool.query(
    `update agent_runs set status = 'paused', pause_reason = 'halted', waits_for = 'halt' where id = any($1)`,
    [ids],
  )
  return { projectId, ids }
}

async function asleep(projectId: string): Promise<number> {
  const { rowCount } = await pool.query('select from agent_runs where project_id = $1 and ready_at is null', [
    projectId,
  ])
  return rowCount ?? 0
}

async function untilAsleep(projectId: string, count: number): Promise<void> {
  while ((await asleep(projectId)) !== count) await new Promise(setImmediate)
}

test('unhalt answers although a run is being written, and wakes the others', async () => {
  const { id } = await kit.createProject()
  await kit.call(`POST /api/projects/${id}/halt`)
  const { ids } = await haltedRuns(3, Promise.resolve(id))
  const other = await pool.connect()
  try {
    await other.query('begin')
    await other.query('select from agent_runs where id = $1 for update', [ids[1]])
    const { status, body } = await kit.call<{ halted_at: string | null }>(`POST /api/projects/${id}/unhalt`)
    assert.deepEqual([status, body.halted_at], [200, null])
    await untilAsleep(id, 1)
  } finally {
    await other.query('rollback')
    other.release()
  }
})

test('halted runs are woken in batches, each of which is announced', async () => {
  const { projectId } = await haltedRuns(12)
  const left: Promise<number>[] = []
  const waker = createHaltedWaker({ db: pool, log: silentLog, onReady: () => left.push(asleep(projectId)), atOnce: 5 })
  waker.wake(projectId)
  await untilAsleep(projectId, 0)
  await waker.stop()
  assert.equal(left.length, 3)
  await Promise.all(left)
})

test('no more runs are woken once the switch is on again, or the process stops', async () => {
  for (const end of ['halt', 'stop'] as const) {
    const { projectId } = await haltedRuns(12)
    const first = Promise.withResolvers<void>()
    let stopped: Promise<void> | undefined
    // The first batch is held up until the switch is on again, or the process stops.
    const db = {
      query: async (...args: Parameters<Db['query']>) => {
        const answer = await pool.query(args[0] as string, args[1] as unknown[]) // the waker sends text
        if (end === 'halt') await setHalted(pool, projectId, true, systemActor)
        else stopped ??= waker.stop()
        first.resolve()
        return answer
      },
    } as Db // the rows are those of the pool
    const waker = createHaltedWaker({ db, log: silentLog, onReady: () => {}, atOnce: 5 })
    waker.wake(projectId)
    await first.promise
    await (stopped ?? waker.stop())
    assert.equal(await asleep(projectId), 7, end)
  }
})

test('a batch that fails is logged, and sweeps wake every run, a full batch each', async () => {
  await pool.query('delete from agent_runs')
  const { projectId } = await haltedRuns(11_000)
  const warnings: string[] = []
  const log: Log = { ...silentLog, warn: (_, sentence) => void warnings.push(sentence) }
  const waker = createHaltedWaker({
    db: { query: () => Promise.reject(new Error('no connection')) },
    log,
    onReady: () => {},
  })
  waker.wake(projectId)
  await waker.stop()
  assert.deepEqual(warnings, ['halted runs will be woken by a sweep'])
  const recovery = createRecovery(
    { pool, journal: createJournal({ db: pool, log: silentLog }), log: silentLog },
    60_000,
  )
  const left: number[] = []
  for (let sweep = 0; sweep < 3; sweep++) {
    await recovery.sweep(crypto.randomUUID())
    left.push(await asleep(projectId))
  }
  assert.deepEqual(left, [6_000, 1_000, 0])
})
