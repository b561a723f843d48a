// The scenarios of pipelines in the specification of flows, as a client of the API sees them.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { flowCalls } from '../../../test/kit/flow-calls.ts'
import type { AppFunction } from '../../kernel/app.ts'

const turn = (): Promise<void> => new Promise(setImmediate)
const works = new Map<string, AppFunction>()
/** Per function: the calls begun, the calls done, and the most calls at once. */
const counts = new Map<string, { begun: number; done: number; most: number }>()
const counted =
  (name: string): AppFunction =>
  async (given: never, context) => {
    const count = counts.get(name) ?? { begun: 0, done: 0, most: 0 }
    counts.set(name, count)
    count.begun++
    count.most = Math.max(count.most, count.begun - count.done)
    try {
      return (await works.get(name)?.(given, context)) ?? given
    } finally {
      count.done++
    }
  }
let pulled = 0
const kit = await createTestApp({
  models: new Map(),
  functions: {
    parse: counted('parse'),
    transform: counted('transform'),
    validate: counted('validate'),
    items: async function* (upTo: number) {
      for (let item = 0; item < upTo; item++) {
        pulled++
        yield item
      }
    },
  },
})
const project = await kit.createProject()
const { start, until, ended, play, tasksOf, eventsOf } = flowCalls(kit, project.id)

function given(functions: Record<string, AppFunction>): void {
  pulled = 0
  counts.clear()
  works.clear()
  for (const [name, work] of Object.entries(functions)) works.set(name, work)
}
const begun = (name: string): number => counts.get(name)?.begun ?? 0
const done = (name: string): number => counts.get(name)?.done ?? 0
const pipeline = (count: number, more: object = {}) => ({
  type: 'pipeline',
  source: { function: 'items', args: count },
  stages: ['parse', 'transform', 'validate'].map((name) => ({ type: 'task', function: name })),
  ...more,
})
const range = (count: number): number[] => Array.from({ length: count }, (_, index) => index)
/** Lets as many calls through as the test has admitted, one after the other. */
function turnstile() {
  let tickets = 0
  return {
    pass: async (): Promise<void> => {
      while (tickets === 0) await turn()
      tickets--
    },
    admit: (count: number): void => {
      tickets += count
    },
  }
}
const reaches = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await turn()
}
/** The number of turns within which an item that is not held up would move on many times. */
const whileNothingHappens = async (): Promise<void> => {
  for (let turns = 0; turns < 500; turns++) await turn()
}

test('Stream processing', async () => {
  const slow = turnstile()
  const validated: string[] = []
  given({
    parse: (item: number) => `${item}`,
    transform: async (text: string) => {
      await slow.pass()
      return `<${text}>`
    },
    validate: (text: string) => {
      validated.push(text)
      return text
    },
  })
  const { id, progress } = await start(pipeline(50))
  assert.equal(progress.total, 3, 'one worker per stage')
  await reaches(() => begun('transform') === 1)
  // Each item goes on as it arrives, and no faster than the slowest stage allows.
  for (const through of [1, 2, 3]) {
    slow.admit(1)
    await reaches(() => validated.length === through)
    await whileNothingHappens()
    assert.deepEqual(
      validated,
      range(through).map((item) => `<${item}>`),
    )
    assert.ok(begun('parse') > through, 'earlier stages are ahead')
  }
  slow.admit(47)
  const run = await ended(id)
  assert.deepEqual(
    run.output,
    range(50).map((item) => `<${item}>`),
  )
  assert.deepEqual(run.progress.items, { total: 50, completed: 50, failed: 0, skipped: 0 })
  assert.deepEqual(
    ['parse', 'transform', 'validate'].map((name) => counts.get(name)?.most),
    [1, 1, 1],
  )
})

test('Backpressure handling', async () => {
  const slow = turnstile()
  given({ validate: () => slow.pass() })
  // The buffer is the usual one: 100 items between two stages.
  const { id } = await start(pipeline(1_000))
  const isFull = (through: number) => (): boolean =>
    begun('validate') === through + 1 &&
    done('transform') === through + 101 &&
    done('parse') === through + 201 &&
    pulled === through + 301
  // Validate holds one item, and the buffer before each stage is full, up to the source.
  await reaches(isFull(0))
  await whileNothingHappens()
  assert.ok(isFull(0)(), `went on although the buffers are full: ${begun('transform')}, ${begun('parse')}, ${pulled}`)
  // Five items leave, so five items move on in each stage, up to the source.
  slow.admit(5)
  await reaches(isFull(5))
  await whileNothingHappens()
  assert.ok(isFull(5)())
  slow.admit(1_000)
  const run = await ended(id)
  assert.deepEqual([run.status, run.output], ['completed', range(1_000)])
})

test('Pipeline error handling', async () => {
  const reached: number[] = []
  const stages = {
    transform: (item: number) => {
      if (item === 3 || item === 7) throw new Error(`cannot transform ${item}`)
      return item * 10
    },
    validate: (item: number) => {
      reached.push(item)
      return item
    },
  }
  given(stages)
  const skipping = await play(pipeline(10, { on_error: 'skip', id: 'line' }))
  const others = range(10)
    .filter((item) => item !== 3 && item !== 7)
    .map((item) => item * 10)
  assert.deepEqual([skipping.status, skipping.output], ['completed', others])
  assert.deepEqual(reached, others, 'the next stage sees all other items, and only those')
  assert.deepEqual(skipping.progress.items, { total: 10, completed: 8, failed: 0, skipped: 2 })
  const skipped = (await eventsOf(skipping.id)).filter(({ event }) => event === 'items.skipped')
  assert.deepEqual(
    skipped.flatMap(({ data }) =>
      (data.errors as [number, string][]).map((error) => [data.task_id, data.stage, ...error]),
    ),
    [
      ['line', 1, 3, 'cannot transform 3'],
      ['line', 1, 7, 'cannot transform 7'],
    ],
    'a skipped item is on record with its stage, its index and the error',
  )

  given(stages)
  reached.length = 0
  const stopping = await play(pipeline(1_000, { on_error: 'stop' }))
  assert.equal(stopping.status, 'failed')
  const reason = 'Stage 1 (transform) failed at item 3: cannot transform 3'
  assert.ok(stopping.error?.endsWith(reason), `${stopping.error}`)
  assert.ok(reached.every((item) => item < 30))
  assert.ok(begun('parse') < 1_000, 'nothing is begun after the failure')
  assert.equal((await tasksOf(stopping.id))[0]?.error, reason)
  assert.equal((await until(stopping.id, () => true)).progress.items?.failed, 1)
})
