// Function leaves that another process calls: a process that knows the function, or one that has room when the owner
// has none.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestFlows } from '../../../test/kit/flows.ts'
import { systemActor } from '../../kernel/principal.ts'
import { NO_PROJECT } from '../../queue/queue-table.ts'
import type { BuiltInNode } from '../machine/built-in-patterns.ts'
import { cancelFlow } from './cancel.ts'
import { claimSuspectHandout, releaseSuspectHandout, settleHandout } from './handouts.ts'

const one = await createTestFlows({ leafLimit: 2, leaseMs: 1_000 })
const other = await createTestFlows({ leafLimit: 2, leaseMs: 1_000, database: one })
const f = (name: string, more: object = {}): BuiltInNode => ({ type: 'task', function: name, ...more })
const until = async (condition: () => boolean | Promise<boolean>): Promise<void> => {
  // The pause lets both workers renew their leases meanwhile.
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 5))
}
const handouts = async (): Promise<number> => (await one.pool.query('select from flow_handouts')).rowCount ?? 0

test('a function that the owner does not know is left to a process that knows it', async () => {
  one.functions.set('ours', (given: unknown) => `one had ${JSON.stringify(given)}`)
  other.functions.set('theirs', (given: unknown) => `other had ${JSON.stringify(given)}`)
  const root: BuiltInNode = { type: 'sequential', steps: [f('ours'), f('theirs', { id: 'x' })] }
  const { status, output } = await one.play(root, { input: 1 })
  assert.deepEqual([status, output], ['completed', 'other had "one had 1"'])
})

test('a function that no process knows waits for a process that knows it', async () => {
  const id = await one.startFlow(f('late'))
  await until(async () => (await handouts()) > 0)
  other.functions.set('late', () => 'here at last')
  other.flowWorker.poke()
  assert.equal((await one.ended(id)).output, 'here at last')
})

test('a leaf that an earlier release handed out is called with the key it has there', async () => {
  const id = await one.startFlow(f('older'))
  const asBefore = `update flow_handouts set call = call - 'scope' || '{"key": "as before"}' where run_id = $1`
  await until(async () => (await one.pool.query(asBefore, [id])).rowCount === 1)
  other.functions.set('older', (_: unknown, { key }) => key)
  other.flowWorker.poke()
  assert.equal((await one.ended(id)).output, 'as before')
})

test('a pipeline goes to a process that knows its functions', async () => {
  other.functions.set('stage', (given: number) => given + 1)
  const root: BuiltInNode = {
    type: 'pipeline',
    source: [1, 2],
    stages: [{ type: 'task', function: 'stage' }],
    on_error: 'stop',
  }
  assert.deepEqual((await one.play(root)).output, [2, 3])
})

test('leaves without room at the owner go to another process, no more at once than the run has workers', async () => {
  const doing = { one: 0, other: 0 }
  let open = 0
  let most = 0
  const work = (who: 'one' | 'other') => async () => {
    most = Math.max(most, ++open)
    doing[who]++
    // Waits until both processes are full, with two leaves each.
    await until(() => doing.one + doing.other >= 4)
    open--
    return who
  }
  one.functions.set('work', work('one'))
  other.functions.set('work', work('other'))
  const branches = Array.from({ length: 12 }, () => f('work'))
  const { status, output } = await one.play({ type: 'parallel', branches }, { workers: 4 })
  assert.equal(status, 'completed')
  assert.equal(most, 4)
  assert.ok(doing.one > 0 && doing.other > 0, JSON.stringify(doing))
  assert.equal((output as string[]).length, 12)
})

test('a leaf that fails in another process is retried as its node says, and its error is kept', async () => {
  let tries = 0
  other.functions.set('fragile', () => {
    if (++tries < 3) throw new Error('broken there')
    return 'mended'
  })
  const failed = await one.play(f('fragile'))
  assert.match(failed.error ?? '', /broken there/)
  const mended = await one.play(f('fragile', { retry: { max_retries: 1, backoff: 1 } }))
  assert.equal(mended.output, 'mended')
})

test('a cancel reaches the function in the other process', async () => {
  let isAborted = false
  other.functions.set('deaf', async (_: unknown, { signal }: { signal: AbortSignal }) => {
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    isAborted = true
  })
  const id = await one.startFlow(f('deaf'), { timeout: 300 })
  assert.equal((await one.ended(id)).status, 'timed_out')
  await until(() => isAborted)
})

test('a cancel does not wait for a function that no process has begun', async () => {
  const id = await one.startFlow({ type: 'sequential', steps: [f('unknown_to_all'), f('ours')] })
  await until(async () => (await one.pool.query('select from flow_handouts where run_id = $1', [id])).rowCount === 1)
  await cancelFlow(one.pool, one.projectId, id, systemActor)
  const { status, progress } = await one.ended(id)
  assert.equal(status, 'cancelled')
  assert.deepEqual([progress.failed, progress.skipped], [0, 2])
})

test('a worker that is silent past its lease loses its leaf to another', async () => {
  const silent = await createTestFlows({ leafLimit: 2, leaseMs: 1_000, database: one })
  let calls = 0
  const hang = async (): Promise<string> => {
    calls++
    await new Promise(() => {})
    return 'never'
  }
  silent.functions.set('relay', hang)
  // Only one process can own the flow run, so its leaf is handed out.
  one.functions.set('own stage', (given: unknown) => given)
  const owned: BuiltInNode = {
    type: 'pipeline',
    source: [1],
    stages: [{ type: 'task', function: 'own stage' }],
    on_error: 'stop',
  }
  const id = await one.startFlow({ type: 'sequential', steps: [owned, f('relay', { id: 'x' })] })
  await until(() => calls === 1)
  // The worker acts as if its process had died: it does not renew its lease, and other processes see that.
  silent.functions.delete('relay')
  await one.pool.query('delete from workers where id = (select owner from flow_handouts where run_id = $1)', [id])
  other.functions.set('relay', () => 'done by another')
  const { status, output } = await one.ended(id)
  assert.deepEqual([status, output, calls], ['completed', 'done by another', 1])
})

test('the next suspect is tried as soon as a leaf that brought down two processes has an outcome', async () => {
  const id = await one.startFlow(f('suspect'))
  const suspect = 'update flow_handouts set crashes = 2 where run_id = $1'
  await until(async () => (await one.pool.query(suspect, [id])).rowCount === 1)
  const owner = one.worker.ownerId()
  const taken = await claimSuspectHandout(one.pool, owner, NO_PROJECT, ['suspect'])
  assert.ok(taken)
  assert.equal(await releaseSuspectHandout(one.pool, owner), false, 'it is under way')
  // The owner of the flow run reads the outcome later; nothing here waits for that.
  const client = await one.pool.connect()
  await client.query('begin')
  assert.equal(await settleHandout(client, taken, { status: 'completed', value: 'done' }, owner), true)
  assert.equal(await releaseSuspectHandout(client, owner), true)
  await client.query('commit')
  client.release()
  assert.equal((await one.ended(id)).output, 'done')
})

test('a flow run that is over leaves no handouts behind', async () => {
  await until(async () => (await handouts()) === 0)
})
