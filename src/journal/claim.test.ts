import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../../test/kit/database.ts'
import { insertProject } from '../../test/kit/runs.ts'
import type { Db } from '../db/pool.ts'
import { newId } from '../kernel/id.ts'
import { silentLog } from '../kernel/log.ts'
import { createJournal } from './append.ts'
import { claimRuns, countReady, isSuspectWaiting } from './claim.ts'
import { insertRun } from './insert-run.ts'
import { releaseOwn, releaseOwnerless, takeOver } from './take-over.ts'

const { pool, clock } = await createTestDatabase()
const projectId = await insertProject(pool)
const journal = createJournal({ db: pool, log: silentLog })

async function addWorker(): Promise<string> {
  const id = newId()
  await pool.query(
    `insert into workers (id, slots, lease_until, lock_key, locked_on) values ($1, 10, muster.now(), 1, now())`,
    [id],
  )
  return id
}
async function addRun(fields: { priority?: number; ancestors?: string[] } = {}): Promise<string> {
  const id = newId()
  const trigger = { type: 'manual' }
  await insertRun(pool, {
    id,
    projectId,
    agentId: newId(),
    trigger,
    input: 'x',
    maxSteps: null,
    timeoutMs: null,
    ...fields,
  })
  return id
}
const forget = (id: string) => async (tx: Db) =>
  (await tx.query('delete from workers where id = $1', [id])).rowCount === 1
const rowOf = async (id: string) => (await pool.query('select * from agent_runs where id = $1', [id])).rows[0]
const claim = (owner: string, limit = 10, suspects = false) => claimRuns(pool, { owner, limit, suspects })
const clear = () => pool.query('delete from agent_runs')

test('a run is claimed once, however many ask at once, by priority and then by age', async () => {
  const owners = await Promise.all([addWorker(), addWorker(), addWorker()])
  const ids: string[] = []
  for (let index = 0; index < 30; index++) ids.push(await addRun({ priority: index % 3 }))
  assert.equal(await countReady(pool), 30)
  const claims = await Promise.all(owners.flatMap((owner) => [claim(owner, 4), claim(owner, 4)]))
  const claimed = claims.flat().map((run) => run.id)
  assert.equal(new Set(claimed).size, claimed.length)
  const rest = await claim(owners[0] ?? '', 100)
  assert.deepEqual([...claimed, ...rest.map((run) => run.id)].toSorted(), ids.toSorted())
  await clear()
  const [low = '', high = '', older = ''] = [
    await addRun(),
    await addRun({ priority: 2 }),
    await addRun({ priority: 1 }),
  ]
  const inOrder = []
  for (let index = 0; index < 3; index++) inOrder.push((await claim(owners[0] ?? '', 1))[0]?.id)
  assert.deepEqual(inOrder, [high, older, low])
  await clear()
})

test('a claim raises the fence, says run.started once, and what is not due yet is left', async () => {
  const owner = await addWorker()
  const id = await addRun()
  await pool.query(`update agent_runs set ready_at = muster.now() + interval '1 hour' where id = $1`, [id])
  assert.deepEqual(await claim(owner), [])
  await clock.advance(3_600_001)
  const [run] = await claim(owner)
  assert.equal(run?.fence, 1)
  assert.equal(run?.is_new, true)
  const { rows } = await pool.query('select seq, kind, data from run_events where run_id = $1', [id])
  assert.deepEqual(
    rows.map((row) => [row.seq, row.kind, row.data.input]),
    [[1, 'run.started', 'x']],
  )
  assert.deepEqual(await claim(owner), [])
  assert.equal(await releaseOwn(pool, owner, []), 1)
  const [again] = await claim(owner)
  assert.equal(again?.fence, 3)
  assert.equal(again?.is_new, false)
  await clear()
})

test('who was declared dead claims nothing', async () => {
  await addRun()
  assert.deepEqual(await claim(newId()), [])
  await clear()
})

test('of several who find a process dead one takes over; the crash is counted once and the old fence is void', async () => {
  const dead = await addWorker()
  const id = await addRun()
  const [run] = await claim(dead)
  const counts = await Promise.all([1, 2, 3, 4].map(() => takeOver(pool, dead, forget(dead))))
  assert.deepEqual(counts.toSorted(), [0, 0, 0, 1])
  assert.equal((await rowOf(id)).crashes, 1)
  const late = await journal.append({ runId: id, fence: run?.fence ?? 0, events: [{ kind: 'test.late', data: {} }] })
  assert.equal(late.status, 'lost')
  await clear()
})

test('after two crashes a run is taken alone, after five it fails and its parent hears of it', async () => {
  const parent = await addRun()
  await pool.query('update agent_runs set ready_at = null, open_children = 1, waits_for = $2 where id = $1', [
    parent,
    'children',
  ])
  const id = await addRun({ ancestors: [parent] })
  for (let crash = 1; crash <= 5; crash++) {
    const owner = await addWorker()
    const isSuspect = crash > 2
    assert.equal(await isSuspectWaiting(pool), isSuspect)
    assert.equal((await claim(owner, 10, !isSuspect)).length, 0)
    const [run] = await claim(owner, 10, isSuspect)
    assert.equal(run?.id, id)
    await journal.append({
      runId: id,
      fence: run?.fence ?? 0,
      events: [{ kind: 'test.begun', data: {} }],
      ancestors: [parent],
    })
    await takeOver(pool, owner, forget(owner))
  }
  const row = await rowOf(id)
  assert.equal(row.status, 'failed')
  assert.equal(row.error_code, 'CRASH_LOOP')
  assert.ok(row.completed_at)
  assert.equal(row.ready_at, null)
  const waiting = await rowOf(parent)
  assert.equal(waiting.open_children, 0)
  assert.ok(waiting.ready_at)
  await clear()
})

test('runs whose owner is registered nowhere are free again, and no crash is counted', async () => {
  const owner = await addWorker()
  const id = await addRun()
  await claim(owner)
  await pool.query('delete from workers where id = $1', [owner])
  assert.equal(await releaseOwnerless(pool), 1)
  const row = await rowOf(id)
  assert.equal(row.owner, null)
  assert.equal(row.crashes, 0)
  assert.ok(row.ready_at)
  await clear()
})

test('what a dead owner had reserved goes back to its agent', async () => {
  const owner = await addWorker()
  const id = await addRun()
  await claim(owner)
  const { agent_id } = await rowOf(id)
  await pool.query('update agent_runs set reserved = 70 where id = $1', [id])
  await pool.query('insert into agent_tokens (agent_id, reserved) values ($1, 100)', [agent_id])
  await takeOver(pool, owner, forget(owner))
  const { rows } = await pool.query('select reserved from agent_tokens where agent_id = $1', [agent_id])
  assert.equal(rows[0].reserved, 30)
  await clear()
})

test('a claim out of a long backlog reads the index in its order, not the table', async () => {
  await pool.query(
    `insert into agent_runs (id, project_id, agent_id, trigger, input)
     select gen_random_uuid(), $1, $1, '{"type":"manual"}', '"x"' from generate_series(1, 20000)`,
    [projectId],
  )
  await pool.query('analyze agent_runs')
  const { rows } = await pool.query<{ 'QUERY PLAN': string }>(
    `explain select id from agent_runs where ready_at <= muster.now() and (crashes >= 2) = false
     order by priority desc, ready_at limit 50 for update skip locked`,
  )
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
  assert.match(plan, /Index Scan using agent_runs_ready/)
  assert.doesNotMatch(plan, /Seq Scan|Sort/)
  await clear()
})
