// PATCH of a flow run under way: its time and its workers, in whichever process it is, and after a takeover.
import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { createTestFlows, type TestFlows } from '../../../test/kit/flows.ts'
import { createScriptedModel } from '../../../test/kit/scripted-model.ts'
import { inTransaction } from '../../db/transaction.ts'
import { silentLog } from '../../kernel/log.ts'
import { systemActor } from '../../kernel/principal.ts'
import { type BuiltInNode, builtInPatterns } from '../machine/built-in-patterns.ts'
import { type Adjustment, adjustFlow } from './adjust.ts'
import { createFlowJournal } from './journal.ts'
import { startFlow } from './start.ts'

let gate = Promise.withResolvers<void>()
/** The gate stays open for the rest of the test: some may come to it later. */
const open = (): void => gate.resolve()
beforeEach(() => {
  gate = Promise.withResolvers()
})
const called: string[] = []
const holdIn =
  (process: string) =>
  async (_: unknown, { signal }: { signal: AbortSignal }) => {
    called.push(process)
    await Promise.race([gate.promise, new Promise((resolve) => signal.addEventListener('abort', resolve))])
    return 'held'
  }
const one = await createTestFlows({ functions: { hold: holdIn('one'), quick: () => 'quick' }, leaseMs: 9_000 })
const { pool, projectId } = one
one.models.set(
  'held',
  createScriptedModel(async () => {
    await gate.promise
    return { text: 'held' }
  }),
)
await one.createAgent({ name: 'slow', model: { provider: 'test', name: 'held' } })

const hold: BuiltInNode = { type: 'task', function: 'hold' }
const holds = (count: number): BuiltInNode => ({
  type: 'parallel',
  branches: Array.from({ length: count }, () => hold),
})
const adjust = (flowRunId: string, change: Adjustment): Promise<boolean> =>
  adjustFlow(pool, { projectId, flowRunId, actor: systemActor }, change)
async function running(id: string, count: number, flows: TestFlows = one): Promise<void> {
  while ((await flows.read(id)).progress.running !== count) await new Promise(setImmediate)
}
async function rowOf(id: string) {
  const { rows } = await pool.query<{ timeout: number; workers: number | null; ready_at: Date | null }>(
    'select timeout, workers, ready_at from flow_runs where id = $1',
    [id],
  )
  return rows[0]
}

test('an adjustment of workers holds at once, more and fewer', async () => {
  const id = await one.startFlow(holds(6), { workers: 1 })
  await running(id, 1)
  await adjust(id, { workers: 4 })
  await running(id, 4)
  await adjust(id, { workers: 6 })
  await running(id, 6)
  open()
  assert.equal((await one.ended(id)).status, 'completed')

  let underWay = 0
  let aloneInARow = 0
  let isOver = false
  one.functions.set('narrow', async () => {
    underWay++
    await new Promise(setImmediate)
    aloneInARow = underWay === 1 ? aloneInARow + 1 : 0
    if (aloneInARow === 5) isOver = true
    underWay--
    if (!isOver) return 'narrow'
    throw new Error('enough')
  })
  const body: BuiltInNode = {
    type: 'parallel',
    branches: Array.from({ length: 4 }, () => ({ type: 'task', function: 'narrow' })),
  }
  const narrow = await one.startFlow({ type: 'loop', body, max_iterations: 10_000 }, { workers: 4 })
  while ((await one.read(narrow)).progress.completed === 0) await new Promise(setImmediate)
  await adjust(narrow, { workers: 1 })
  // It fails as soon as five leaves in a row were alone, and would time out otherwise.
  assert.match((await one.ended(narrow)).error ?? '', /enough/)
})

test('a flow run that is given more time outlives one that is not', async () => {
  const id = await one.startFlow(hold, { timeout: 1_000 })
  await running(id, 1)
  assert.ok(await adjust(id, { timeout: 600_000 }))
  const other = await one.startFlow(hold, { timeout: 1_000 })
  assert.equal((await one.ended(other)).status, 'timed_out')
  assert.equal((await one.read(id)).status, 'running')
  open()
  assert.equal((await one.ended(id)).status, 'completed')
})

test('a flow run that is given less time than it has taken is timed out at once', async () => {
  const id = await one.startFlow(hold)
  await running(id, 1)
  await adjust(id, { timeout: 1 })
  const { status, error } = await one.ended(id)
  assert.deepEqual([status, error], ['timed_out', 'The time of the flow was up.'])
  open()
})

test('a flow run that waits without an owner is woken by its new time, and gets its new workers', async () => {
  const asks: BuiltInNode = { type: 'task', agent: 'slow', input: 'x' }
  const id = await one.startFlow({ type: 'parallel', branches: [asks, asks] }, { workers: 1 })
  while ((await one.read(id)).owner !== null || (await one.read(id)).progress.running < 1) {
    await new Promise(setImmediate)
  }
  await adjust(id, { workers: 2 })
  await running(id, 2)
  await adjust(id, { timeout: 1 })
  assert.equal((await one.ended(id)).status, 'timed_out')
  open()
})

test('an adjustment that comes while the owner gives the flow run up makes it ready', async () => {
  const run = { projectId, flowId: null, root: hold, input: null, timeoutMs: 600_000, workers: null }
  const id = await inTransaction(pool, async (tx) => {
    const made = await startFlow(tx, run, systemActor, builtInPatterns)
    // Nobody takes it: the test is its owner.
    await tx.query(
      `update flow_runs set ready_at = null, status = 'running', started_at = muster.now() where id = $1`,
      [made],
    )
    return made
  })
  const journal = createFlowJournal({ db: pool, log: silentLog })
  const park = (seen: number) =>
    journal.append({
      runId: id,
      fence: null,
      events: [],
      change: { release: true, seen_leaves: 0, seen_adjustments: seen, ready_in_ms: 500_000 },
    })
  await park(0)
  assert.equal((await rowOf(id))?.ready_at, null)
  await pool.query('update flow_runs set adjustments = 1 where id = $1', [id])
  await park(1)
  assert.equal((await rowOf(id))?.ready_at, null)
  await park(0)
  const { rows } = await pool.query(
    'select ready_at is not null or owner is not null as is_taken from flow_runs where id = $1',
    [id],
  )
  assert.equal(rows[0].is_taken, true)
  one.flowWorker.poke()
  await running(id, 1)
  open()
  await one.ended(id)
})

test('an adjustment is in the journal, and may come before the start', async () => {
  const run = { projectId, flowId: null, root: hold, input: null, timeoutMs: 600_000, workers: null }
  const id = await inTransaction(pool, async (tx) => {
    const made = await startFlow(tx, run, systemActor, builtInPatterns)
    await adjustFlow(tx, { projectId, flowRunId: made, actor: systemActor }, { workers: 7 })
    return made
  })
  one.flowWorker.poke()
  await running(id, 1)
  await adjust(id, { timeout: 500_000 })
  open()
  assert.equal((await one.ended(id)).status, 'completed')
  const { rows } = await pool.query(
    `select kind, data from flow_events where run_id = $1 and kind like 'flow.%' order by seq`,
    [id],
  )
  assert.deepEqual(rows, [
    { kind: 'flow.adjusted', data: { timeout: 600_000, workers: 7 } },
    { kind: 'flow.started', data: { input: null } },
    { kind: 'flow.adjusted', data: { timeout: 500_000, workers: 7 } },
    { kind: 'flow.completed', data: { output: 'held' } },
  ])
})

test('an adjustment whose notice is lost is found when the process listens again', async () => {
  const id = await one.startFlow(holds(3), { workers: 1 })
  await running(id, 1)
  await inTransaction(pool, async (tx) => {
    // The connection that listens holds the advisory lock of its process.
    const { rowCount } = await tx.query(
      `select pg_terminate_backend(l.pid) from pg_locks l join pg_database d on d.oid = l.database
       where l.locktype = 'advisory' and d.datname = current_database()`,
    )
    assert.ok((rowCount ?? 0) > 0)
    await adjustFlow(tx, { projectId, flowRunId: id, actor: systemActor }, { workers: 3 })
  })
  await running(id, 3)
  open()
  assert.equal((await one.ended(id)).status, 'completed')
})

test('an adjustment holds in another process, and after a takeover', async () => {
  called.length = 0
  const id = await one.startFlow(holds(5), { workers: 1, timeout: 600_000 })
  await running(id, 1)
  await adjust(id, { workers: 2 })
  while (called.length < 2) await new Promise(setImmediate)
  called.length = 0
  const two = await createTestFlows({ functions: { hold: holdIn('two') }, leaseMs: 9_000, database: one })
  // The first owner is cut off, as by a crash, and stays away: it does not know the function any more.
  one.functions.delete('hold')
  await pool.query(`update flow_runs set owner = null, fence = fence + 1, ready_at = muster.now() where id = $1`, [id])
  two.flowWorker.poke()
  while (called.length < 2) await new Promise(setImmediate)
  await running(id, 2)
  assert.deepEqual([...new Set(called)], ['two'])
  await adjust(id, { workers: 3, timeout: 400_000 })
  await running(id, 3)
  assert.deepEqual((await rowOf(id))?.timeout, 400_000)
  await adjust(id, { timeout: 1 })
  assert.equal((await two.ended(id)).status, 'timed_out')
  open()
})

test('a flow run that has ended is not adjusted, nor one of another project', async () => {
  const { id } = await one.play({ type: 'task', function: 'quick' })
  assert.equal(await adjust(id, { workers: 2 }), false)
  const of = { projectId: crypto.randomUUID(), flowRunId: id, actor: systemActor }
  assert.equal(await adjustFlow(pool, of, { workers: 2 }), false)
})
