// The classic example of map-reduce: the words of 10,000 documents are counted by many workers and by one loop.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestFlows } from '../../../test/kit/flows.ts'
import { seeds } from '../../../test/kit/how-many.ts'
import type { BuiltInNode } from '../machine/built-in-patterns.ts'

const DOCUMENTS = 10_000
const VOCABULARY = 800
const [seed = 0] = seeds(1)

/** Gives the same numbers for the same seed (mulberry32). */
function createRandom(from: number): () => number {
  let state = from
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

/**
 * A few words are in nearly all documents and most words in few, as in any language. Some words look like keys or
 * numbers.
 */
const special = ['__proto__', 'constructor', '1', '{{input}}', 'ä', '😀', '"', 'toString', '\\', 'null']
const wordOf = (place: number): string => special[place] ?? `word${place}`
function* documents(): Generator<string> {
  const random = createRandom(seed)
  for (let index = 0; index < DOCUMENTS; index++) {
    const words = Array.from({ length: 1 + Math.floor(random() * 30) }, () =>
      wordOf(Math.floor(random() ** 3 * VOCABULARY)),
    )
    yield words.join(' ')
  }
}

function countWords(texts: Iterable<string>): Map<string, number> {
  const counts = new Map<string, number>()
  for (const text of texts) for (const word of text.split(' ')) counts.set(word, (counts.get(word) ?? 0) + 1)
  return counts
}
const expected = [...countWords(documents())].toSorted(([one], [other]) => (one < other ? -1 : 1))

const partitioned = new Map<string, number>()
const flows = await createTestFlows({
  functions: {
    documents: async function* () {
      yield* documents()
    },
    count: ({ items }: { items: string[] }) => [...countWords(items)],
    add: ({ key, values }: { key: string; values: number[] }) => [key, values.reduce((sum, value) => sum + value, 0)],
    by_length: ({ key, partitions }: { key: string; partitions: number }) => {
      partitioned.set(key, (partitioned.get(key) ?? 0) + 1)
      return key.length % partitions
    },
  },
})
const reducersOf = async (id: string): Promise<number> => {
  const { rowCount } = await flows.pool.query(
    `select from flow_events where run_id = $1 and kind = 'task.completed' and data->>'task_id' like 'root/reduce %'`,
    [id],
  )
  return rowCount ?? 0
}

for (const partition of ['hash', 'range', 'by_length']) {
  test(`10,000 documents partitioned by ${partition} have the word counts of a single loop (MUSTER_TEST_SEED=${seed})`, async () => {
    const root: BuiltInNode = {
      type: 'map_reduce',
      items: { function: 'documents' },
      workers: 10,
      map: 'count',
      reduce: 'add',
      partition,
      reducers: 7,
    }
    const { id, status, output, error } = await flows.play(root)
    assert.deepEqual([status, error], ['completed', null])
    assert.ok(expected.length > 500, 'there is something to count')
    assert.deepEqual(output, expected)
    const reducers = await reducersOf(id)
    assert.ok(reducers > 1 && reducers <= 7, `${reducers} reducers`)
  })
}

test('the partition function was asked about every word, once', () => {
  assert.deepEqual(
    [...partitioned].toSorted(([one], [other]) => (one < other ? -1 : 1)),
    expected.map(([word]) => [word, 1]),
  )
})
