// Functions as sources of a map or a fork: they give lists or iterables, which are read in pages that survive a crash.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestFlows } from '../../../test/kit/flows.ts'
import type { BuiltInNode } from '../machine/built-in-patterns.ts'

const flows = await createTestFlows()
flows.functions.set('count', ({ items }: { items: unknown[] }) => [items.length])
flows.functions.set('sum', ({ values }: { values: number[] }) => values.reduce((all, each) => all + each, 0))
const counting = (items: unknown): BuiltInNode => ({
  type: 'map_reduce',
  items,
  workers: 4,
  map: 'count',
  reduce: 'sum',
})
const pagesOf = async (id: string): Promise<number> =>
  (await flows.pool.query(`select from flow_events where run_id = $1 and kind = 'source.page'`, [id])).rowCount ?? 0

test('a function may give a list or a generator, also an async one; a single page has no event of its own', async () => {
  flows.functions.set('list', () => [1, 2, 3])
  flows.functions.set('generator', function* ({ to }: { to: number }) {
    for (let item = 0; item < to; item++) yield { item }
  })
  flows.functions.set('slowly', async function* () {
    for (let item = 0; item < 5; item++) yield item
  })
  assert.equal((await flows.play(counting('list'))).output, 3)
  const { id, output } = await flows.play(counting({ function: 'generator', args: { to: 7 } }))
  assert.deepEqual([output, await pagesOf(id)], [7, 0])
  assert.equal((await flows.play(counting('slowly'))).output, 5)
})

test('100,000 items are read in pages, and all are mapped', async () => {
  flows.functions.set('many', async function* () {
    for (let item = 0; item < 100_000; item++) yield item
  })
  const { id, output } = await flows.play(counting('many'))
  assert.deepEqual([output, await pagesOf(id)], [100_000, 21])
})

test('the next owner of a flow reads on after the last page', async () => {
  let opened = 0
  const passed = Promise.withResolvers<void>()
  flows.functions.set('cut off', async function* (_: unknown, { signal }: { signal: AbortSignal }) {
    const life = ++opened
    for (let item = 0; item < 15_000; item++) {
      // The first call hangs in its third page.
      if (life === 1 && item === 12_500) {
        passed.resolve()
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
      }
      yield life === 1 ? 'first' : 'second'
    }
  })
  flows.functions.set('lives', ({ items }: { items: string[] }) => items.map((item) => [item, 1]))
  flows.functions.set('tally', ({ key, values }: { key: string; values: number[] }) => [key, values.length])
  const id = await flows.startFlow({ ...counting('cut off'), map: 'lives', reduce: 'tally' } as BuiltInNode)
  await passed.promise
  // The owner finds that it is not the owner any more, as after a takeover.
  await flows.pool.query(
    'update flow_runs set fence = fence + 1, owner = null, ready_at = muster.now() where id = $1',
    [id],
  )
  flows.flowWorker.poke()
  const { status, output } = await flows.ended(id)
  assert.deepEqual(
    [status, output],
    [
      'completed',
      [
        ['first', 10_000],
        ['second', 5_000],
      ],
    ],
  )
})

test('a source that fails, or gives no list, fails the flow with an error that names the item', async () => {
  flows.functions.set('breaks', function* () {
    yield 1
    throw new Error('no more paper')
  })
  flows.functions.set('no list', () => 17)
  assert.match((await flows.play(counting('breaks'))).error ?? '', /failed at item 1: no more paper/)
  assert.match((await flows.play(counting('no list'))).error ?? '', /no list/)
})

test('a function may give the problem of a fork; a text is itself the problem', async () => {
  flows.functions.set('numbers', async function* () {
    for (let item = 1; item <= 10; item++) yield item
  })
  flows.functions.set('large', (given: unknown) => Array.isArray(given) && given.length > 2)
  flows.functions.set('halves', (given: unknown[]) => [given.slice(0, given.length / 2), given.slice(given.length / 2)])
  flows.functions.set('add', (given: number[] | string) =>
    typeof given === 'string' ? given : given.reduce((a, b) => a + b, 0),
  )
  const parts = {
    should_split: 'large',
    split: 'halves',
    solve: 'add',
    join: 'add',
    workers: 2,
    stealing: true,
  } as const
  assert.equal((await flows.play({ type: 'fork_join', problem: { function: 'numbers' }, ...parts })).output, 55)
  assert.equal((await flows.play({ type: 'fork_join', problem: 'numbers', ...parts })).output, 'numbers')
})
