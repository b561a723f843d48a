import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../../test/kit/database.ts'
import { readPlans, recordStatements } from '../../test/kit/query-plans.ts'
import { insertProject, insertWorker } from '../../test/kit/runs.ts'
import type { Db } from '../db/pool.ts'
import { newId } from '../kernel/id.ts'
import { silentLog } from '../kernel/log.ts'
import { type FairAsk, NO_PROJECT } from '../queue/queue-table.ts'
import { createJournal } from './append.ts'
import { claimCappedRuns, claimRuns, claimSuspectRun, countReady, promoteDueRuns, releaseSuspectRun } from './claim.ts'
import type { StoredEvent } from './entries.ts'
import { insertRun } from './insert-run.ts'
import { releaseOwn, releaseOwnerless, takeOver } from './take-over.ts'

const { pool, clock } = await createTestDatabase()
const projectId = await insertProject(pool)
const published: StoredEvent[] = []
const journal = createJournal({ db: pool, log: silentLog, onWritten: (events) => void published.push(...events) })
const givenUp: string[] = []
const parts = { pool, journal, onEnded: async (_tx: Db, ids: readonly string[]) => void givenUp.push(...ids) }

async function addRun(fields: { priority?: number; ancestors?: string[]; projectId?: string } = {}): Promise<string> {
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
const deal = (owner: string, free = 10, ask: Partial<FairAsk> = {}) =>
  claimRuns(pool, { owner, free, kept: 0, cursor: NO_PROJECT, projectIds: [], counts: [], leftOut: [], ...ask })
const claim = async (owner: string, free = 10) => (await deal(owner, free)).claimed
const clear = () => pool.query('delete from agent_runs')

test('a run is claimed once, however many ask at once, by priority and then by age', async () => {
  const owners = await Promise.all([insertWorker(pool), insertWorker(pool), insertWorker(pool)])
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

test('a claim raises the fence, writes run.started once, and leaves runs that are not due yet', async () => {
  const owner = await insertWorker(pool)
  const id = await addRun()
  await pool.query(`update agent_runs set ready_at = null, wake_at = muster.now() + interval '1 hour' where id = $1`, [
    id,
  ])
  assert.equal(await promoteDueRuns(pool), 0)
  assert.deepEqual(await claim(owner), [])
  await clock.advance(3_600_001)
  assert.equal(await promoteDueRuns(pool), 1)
  const [run] = await claim(owner)
  assert.equal(run?.fence, 1)
  assert.equal(run?.is_new, true)
  const { rows } = await pool.query('select seq, kind, data from run_events where run_id = $1', [id])
  assert.deepEqual(
    rows.map((row) => [row.seq, row.kind, row.data.input]),
    [[1, 'run.started', 'x']],
  )
  assert.deepEqual(await claim(owner), [])
  assert.equal(await releaseOwn(parts, owner, []), 1)
  const [again] = await claim(owner)
  assert.equal(again?.fence, 3)
  assert.equal(again?.is_new, false)
  await clear()
})

test('a process that was declared dead claims nothing', async () => {
  await addRun()
  assert.deepEqual(await claim(newId()), [])
  await clear()
})

test('of several processes that find another one dead one takes over; the crash is counted once and the old fence is void', async () => {
  const dead = await insertWorker(pool)
  const id = await addRun()
  const [run] = await claim(dead)
  const taken = await Promise.all([1, 2, 3, 4].map(() => takeOver(parts, dead, forget(dead))))
  assert.deepEqual(taken.toSorted(), [0, 0, 0, 1])
  assert.equal((await rowOf(id)).crashes, 1)
  const late = await journal.append({ runId: id, fence: run?.fence ?? 0, events: [{ kind: 'test.late', data: {} }] })
  assert.equal(late.status, 'lost')
  await clear()
})

test('after two crashes a run is a suspect; after five the run fails, and its parent is told', async () => {
  const parent = await addRun()
  await pool.query('update agent_runs set ready_at = null, open_children = 1, waits_for = $2 where id = $1', [
    parent,
    'children',
  ])
  const id = await addRun({ ancestors: [parent] })
  for (let crash = 1; crash <= 5; crash++) {
    const owner = await insertWorker(pool)
    const isSuspect = crash > 2
    const run = isSuspect ? await claimSuspectRun(pool, owner, NO_PROJECT) : (await claim(owner))[0]
    assert.equal((await claim(owner)).length, 0)
    assert.equal(run?.id, id)
    await journal.append({
      runId: id,
      fence: run?.fence ?? 0,
      events: [{ kind: 'test.begun', data: {} }],
      ancestors: [parent],
    })
    published.splice(0)
    assert.equal(await takeOver(parts, owner, forget(owner)), 1)
    // The process that takes over publishes the events that it wrote, so its log and its traces show the end.
    const told = published.filter(({ runId }) => runId === id).map(({ kind }) => kind)
    assert.deepEqual(told, crash === 5 ? ['run.recovered', 'run.failed'] : ['run.recovered'])
  }
  // Its questions to people are closed with it, once.
  assert.deepEqual(givenUp, [id])
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
  const owner = await insertWorker(pool)
  const id = await addRun()
  await claim(owner)
  await pool.query('delete from workers where id = $1', [owner])
  assert.equal(await releaseOwnerless(parts), 1)
  const row = await rowOf(id)
  assert.equal(row.owner, null)
  assert.equal(row.crashes, 0)
  assert.ok(row.ready_at)
  await clear()
})

test('the tokens that a dead owner had reserved go back to the agent', async () => {
  const owner = await insertWorker(pool)
  const id = await addRun()
  await claim(owner)
  const { agent_id } = await rowOf(id)
  await pool.query('update agent_runs set reserved = 70 where id = $1', [id])
  await pool.query('insert into agent_tokens (agent_id, reserved) values ($1, 100)', [agent_id])
  await takeOver(parts, owner, forget(owner))
  const { rows } = await pool.query('select reserved from agent_tokens where agent_id = $1', [agent_id])
  assert.equal(rows[0].reserved, 30)
  await clear()
})

test('the cost of a claim depends on the rows it takes, not on rows that wait, have ended or were claimed before', async () => {
  const owner = await insertWorker(pool)
  const others = await Promise.all([1, 2, 3].map(() => insertProject(pool)))
  await pool.query(
    `insert into agent_runs (id, project_id, agent_id, trigger, input, ready_at, wake_at)
     select gen_random_uuid(), ($1::uuid[])[1 + n % 4], $2, '{"type":"manual"}', '"x"',
       case when n % 2 = 0 then muster.now() end, case when n % 2 = 1 then muster.now() + interval '1 hour' end
     from generate_series(1, 20000) n`,
    [[projectId, ...others], projectId],
  )
  await pool.query('analyze agent_runs')
  for (let round = 0; round < 60; round++) await deal(owner, 8, { kept: 1 })
  const recording = recordStatements(pool)
  assert.equal((await deal(owner, 8, { kept: 1 })).claimed.length, 7)
  recording.stop()
  for (const plan of await readPlans(pool, recording.statements, { large: ['agent_runs'] })) {
    assert.deepEqual(plan.sequentialScans, [], plan.explained)
    // Seven rows, each in every index that it enters or leaves.
    assert.ok(plan.buffers < 600, `${plan.buffers} buffers\n${plan.explained}`)
  }
  await clear()
})

test('one suspect is under way in the whole instance, and a death is charged to it alone', async () => {
  const [one, two] = await Promise.all([insertWorker(pool), insertWorker(pool)])
  const [suspect, next, bystander] = [await addRun(), await addRun(), await addRun()]
  await pool.query('update agent_runs set crashes = 2 where id = any($1)', [[suspect, next]])
  assert.equal((await claimSuspectRun(pool, one, NO_PROJECT))?.id, suspect)
  assert.equal(await claimSuspectRun(pool, two, NO_PROJECT), null)
  assert.equal(await claimSuspectRun(pool, one, NO_PROJECT), null)
  assert.deepEqual(
    (await claim(one)).map((run) => run.id),
    [bystander],
  )
  await takeOver(parts, one, forget(one))
  assert.equal((await rowOf(suspect)).crashes, 3)
  assert.equal((await rowOf(bystander)).crashes, 0)
  assert.equal((await claimSuspectRun(pool, two, NO_PROJECT))?.id, next, 'the next suspect has its turn')
  await clear()
  await releaseSuspectRun(pool, two)
})

test('a completed step sets the crashes back, and lets the next suspect be taken', async () => {
  const owner = await insertWorker(pool)
  const [first, second] = [await addRun(), await addRun()]
  await pool.query('update agent_runs set crashes = 4 where id = any($1)', [[first, second]])
  const run = await claimSuspectRun(pool, owner, NO_PROJECT)
  assert.equal(await releaseSuspectRun(pool, owner), false)
  await journal.append({
    runId: first,
    fence: run?.fence ?? 0,
    events: [{ kind: 'test.step', data: {} }],
    change: { steps: 1 },
  })
  assert.equal((await rowOf(first)).crashes, 0)
  assert.equal(await releaseSuspectRun(pool, owner), true)
  assert.equal((await claimSuspectRun(pool, owner, NO_PROJECT))?.id, second)
  await clear()
  await releaseSuspectRun(pool, owner)
})

test('a suspect that hangs loses its turn after a while, and the next suspect is one of another project', async () => {
  const owner = await insertWorker(pool)
  const other = await insertProject(pool)
  const [hanging, older, foreign] = [await addRun(), await addRun(), await addRun({ projectId: other })]
  await pool.query('update agent_runs set crashes = 2 where id = any($1)', [[hanging, older, foreign]])
  assert.equal((await claimSuspectRun(pool, owner, NO_PROJECT))?.id, hanging)
  assert.equal(await releaseSuspectRun(pool, owner), false)
  await pool.query(`update suspect_under_way set taken_at = taken_at - interval '31 seconds'`)
  assert.equal(await releaseSuspectRun(pool, owner), true)
  assert.equal((await claimSuspectRun(pool, owner, projectId))?.id, foreign)
  // A death is charged to the suspect that has its turn.
  await takeOver(parts, owner, forget(owner))
  assert.equal((await rowOf(foreign)).crashes, 3)
  assert.equal((await rowOf(hanging)).crashes, 2)
  await clear()
})

test('claims are dealt over projects in turn, within a project by priority and age', async () => {
  const owner = await insertWorker(pool)
  const projects = await Promise.all([1, 2, 3].map(() => insertProject(pool)))
  const projectOf = new Map<string, string>()
  for (const project of projects) {
    for (let index = 0; index < 6; index++) projectOf.set(await addRun({ projectId: project }), project)
  }
  const shares = (runs: readonly { id: string }[]) =>
    projects.map((project) => runs.filter((run) => projectOf.get(run.id) === project).length)
  const { claimed, cursor } = await deal(owner, 6)
  assert.deepEqual(shares(claimed), [2, 2, 2])
  const singles = []
  let from = cursor
  for (let index = 0; index < 3; index++) {
    const one = await deal(owner, 1, { cursor: from })
    singles.push(...one.claimed)
    from = one.claimed[0]?.project_id ?? from
  }
  assert.deepEqual(shares(singles), [1, 1, 1])
  await clear()
})

test('kept slots go to a project that has fewer under way than there are slots free', async () => {
  const owner = await insertWorker(pool)
  const [hog, newcomer] = [await insertProject(pool), await insertProject(pool)]
  for (let index = 0; index < 20; index++) await addRun({ projectId: hog })
  const first = await deal(owner, 10, { kept: 2 })
  assert.equal(first.claimed.length, 8, 'two of ten slots stay free')
  const underWay = { projectIds: [hog], counts: [8] }
  assert.equal((await deal(owner, 2, { kept: 2, ...underWay })).claimed.length, 0)
  const id = await addRun({ projectId: newcomer })
  const second = await deal(owner, 2, { kept: 2, ...underWay })
  assert.deepEqual(
    second.claimed.map((run) => run.id),
    [id],
  )
  await clear()
})

test('two projects that arrive together leave a slot for a third', async () => {
  const owner = await insertWorker(pool)
  for (const project of [await insertProject(pool), await insertProject(pool)]) {
    for (let index = 0; index < 20; index++) await addRun({ projectId: project })
  }
  const { claimed } = await deal(owner, 10, { kept: 2 })
  assert.equal(claimed.length, 8)
  await clear()
})

test('a cap holds over processes that claim at once', async () => {
  const owners = await Promise.all([insertWorker(pool), insertWorker(pool), insertWorker(pool)])
  const capped = await insertProject(pool)
  for (let index = 0; index < 9; index++) await addRun({ projectId: capped })
  const all = await Promise.all(
    owners.map((owner) => claimCappedRuns(pool, { owner, projectId: capped, limit: 5, cap: 4 })),
  )
  assert.ok(all.flat().length <= 4, `${all.flat().length}`)
  for (const owner of owners) await claimCappedRuns(pool, { owner, projectId: capped, limit: 5, cap: 4 })
  const { rows } = await pool.query('select count(*)::int as count from agent_runs where owner is not null')
  assert.equal(rows[0].count, 4)
  await clear()
})
