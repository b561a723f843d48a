import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../../test/kit/database.ts'
import { insertProject, insertWorker } from '../../test/kit/runs.ts'
import { until } from '../../test/kit/until.ts'
import { createJournal } from '../journal/append.ts'
import { insertRun, type NewRun, placeBelow } from '../journal/insert-run.ts'
import type { Journal } from '../journal/journal.ts'
import { spawnRun } from '../journal/spawn-run.ts'
import { newId } from '../kernel/id.ts'
import { silentLog } from '../kernel/log.ts'
import { cancelRuns } from './cancel.ts'
import { cancelled } from './end.ts'

const { pool } = await createTestDatabase()
const projectId = await insertProject(pool)
const owner = await insertWorker(pool)
const journal = createJournal({ db: pool, log: silentLog })

const newRun = (more: Partial<NewRun> = {}): NewRun => ({
  id: newId(),
  projectId,
  agentId: newId(),
  trigger: { type: 'manual' },
  input: 'x',
  maxSteps: null,
  timeoutMs: null,
  ...more,
})

async function ownedParent(): Promise<{ id: string; fence: number }> {
  const run = newRun()
  await insertRun(pool, run)
  await pool.query(`update agent_runs set owner = $2, fence = 1, ready_at = null, status = 'running' where id = $1`, [
    run.id,
    owner,
  ])
  return { id: run.id, fence: 1 }
}

const rowOf = async (id: string) => (await pool.query('select * from agent_runs where id = $1', [id])).rows[0]
const WAITING = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
const isSomebodyWaiting = async () => (await pool.query(WAITING)).rowCount !== 0

test('a sub-run that is started while the cancel of its parent waits is cancelled too', async () => {
  const parent = await ownedParent()
  const child = newRun(placeBelow({ id: parent.id, ancestors: [], depth: 0 }))
  let cancelling: Promise<void> = Promise.resolve()
  await spawnRun(pool, parent, async () => {
    cancelling = cancelRuns({ pool, journal }, projectId, [parent.id])
    await until(isSomebodyWaiting, 'the cancel waits for the lock')
    return child
  })
  await cancelling
  assert.equal((await rowOf(child.id)).status, 'cancelled')
  assert.notEqual((await rowOf(parent.id)).cancel_requested_at, null)
  assert.equal((await rowOf(parent.id)).open_children, 0)
})

test('a run that has ended counts no open sub-runs, even if it ended before them', async () => {
  const parent = await ownedParent()
  const child = newRun(placeBelow({ id: parent.id, ancestors: [], depth: 0 }))
  await spawnRun(pool, parent, child)
  assert.equal((await rowOf(parent.id)).open_children, 1)
  const end = cancelled(null)
  const ends = { events: [end.event], change: { set: end.set } }
  await journal.append({ runId: parent.id, fence: parent.fence, ancestors: [], ...ends })
  assert.equal((await rowOf(parent.id)).open_children, 0)
  await journal.append({ runId: child.id, fence: 0, ancestors: [parent.id], ...ends })
  const row = await rowOf(parent.id)
  assert.deepEqual([row.open_children, row.last_seq, row.ready_at], [0, 1, null])
})

test('many runs are cancelled in several short transactions, and a cancel that was cut off goes on', async () => {
  const ids = Array.from({ length: 450 }, () => newId())
  for (const id of ids) await insertRun(pool, newRun({ id }))
  let batches = 0
  const cutOff: Journal = {
    ...journal,
    appendAllIn: (tx, entries) => {
      if (++batches === 3) throw new Error('cut off')
      return journal.appendAllIn(tx, entries)
    },
  }
  await assert.rejects(cancelRuns({ pool, journal: cutOff }, projectId, ids), /cut off/)
  const isCancelled = async () => {
    const { rows } = await pool.query<{ id: string }>(
      `select id from agent_runs where id = any($1) and status = 'cancelled'`,
      [ids],
    )
    return rows.map(({ id }) => id).toSorted()
  }
  assert.deepEqual(await isCancelled(), ids.toSorted().slice(0, 200), 'whole batches, in the order of the ids')
  await cancelRuns({ pool, journal }, projectId, ids)
  assert.deepEqual(await isCancelled(), ids.toSorted())
  const { rows } = await pool.query<{ batches: number; events: number }>(
    `select count(distinct r.xmin::text)::int as batches, count(e)::int as events
     from agent_runs r left join run_events e on e.run_id = r.id and e.kind = 'run.cancelled' where r.id = any($1)`,
    [ids],
  )
  assert.deepEqual(rows, [{ batches: 5, events: 450 }])
})

test('a cancel of a run that is claimed and has not started leaves the journal to begin with the start', async () => {
  const { id } = await ownedParent()
  await cancelRuns({ pool, journal }, projectId, [id])
  assert.notEqual((await rowOf(id)).cancel_requested_at, null)
  assert.equal((await rowOf(id)).last_seq, 0)
})
