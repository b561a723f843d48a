import { createHash } from 'node:crypto'
import { z } from 'zod'
import { countField, sharedFields, workField } from '../../../kernel/flow.ts'
import { kindOf } from '../../../kernel/kind-of.ts'
import {
  type Child,
  callOf,
  completed,
  endOf,
  failed,
  flattened,
  leafOf,
  type Move,
  type NodeOutcome,
  type NodeState,
} from '../move.ts'
import { type Pattern, type PatternGuide, workerNames, workPart } from '../pattern.ts'
import { sharesOf } from '../shares.ts'
import { sourceLeaf, sourceParts } from '../source.ts'
import { condensingCalls, itemsOf, MANY, PUT_TOGETHER, promptOf, type Suits, workersOf } from '../workload.ts'

const schema = z.strictObject({
  type: z.literal('map_reduce'),
  ...sharedFields,
  items: z.unknown(),
  workers: countField,
  map: workField,
  reduce: workField,
  partition: workField.optional(),
  reducers: countField.optional(),
})
export type MapReduce = z.infer<typeof schema>
export type MapReduceInput = z.input<typeof schema>

const TURNS = ['items', 'map', 'partition', 'reduce']

const guide: PatternGuide = {
  text: 'Deals the items to its workers in equal parts, maps each part, and puts the results together. Map is given `{items}`, its part of the list. It answers with a list of values, or with pairs `[[key, value], …]`. Reduce is given `{values}` once, or `{key, values}` for each key. The output is the result of reduce, or the list of its results, ordered by key.',
  fields: {
    items:
      'The list: a value, a template, or a function that gives a list or an (async) iterable: its name, or `{"function": …, "args": …}`.',
    workers: 'The number of parts.',
    map: 'A function or leaf for each part.',
    reduce: 'A function or leaf for all values, or for the values of each key.',
    partition:
      'Spreads the keys over the reducers: `hash` (the default), `range`, or a function that is given `{key, partitions}` and answers 0 to partitions - 1.',
    reducers: 'The number of groups in which the keys are reduced.',
  },
  example: {
    input: { reviews: ['The tea is good.', 'The parcel was late.', 'Good tea, slow parcel.'] },
    root: {
      type: 'map_reduce',
      items: '{{input.reviews}}',
      workers: 2,
      map: {
        type: 'task',
        function: 'muster.ask_each',
        args: { prompt: 'Is this review about the product or about the delivery?', items: '{{item.items}}' },
      },
      reduce: {
        type: 'task',
        function: 'muster.condense',
        args: { prompt: 'Sum these judgements up.', items: '{{item.values}}' },
      },
    },
  },
}

const suits: Suits = {
  summary: 'many items, each worked on by itself, and the results put together into one',
  rank: 1,
  cues: [
    { weight: 10, speaks: /\bmap[\s/_-]*reduce\b/i, because: 'the description names it' },
    {
      weight: 5,
      speaks: ({ text }) =>
        /\b(independent(ly)?|each|every|all|across|per|by itself)\b/i.test(text) && PUT_TOGETHER.test(text),
      because: 'every item is worked on by itself and the results are put together',
    },
    {
      weight: 4,
      speaks: ({ text, items }) => (items ?? 0) >= MANY && PUT_TOGETHER.test(text),
      because: 'there are many items and one result',
    },
    {
      weight: 5,
      speaks:
        /\b(group(ed)? by|word (count|frequenc)|histogram|inverted index|how many .{1,200} (mention|contain|per))/i,
      because: 'results are gathered by key',
    },
  ],
  plan: (facts) => {
    const items = itemsOf(facts)
    const workers = workersOf(facts)
    const definition: MapReduce = {
      type: 'map_reduce',
      items: '{{input.items}}',
      workers,
      map: callOf('muster.ask_each', { prompt: promptOf(facts, 0), items: '{{item.items}}' }),
      reduce: callOf('muster.condense', { prompt: promptOf(facts, -1), items: '{{item.values}}' }),
    }
    const reducing = condensingCalls(items)
    return { definition, workers, calls: items + reducing, rounds: Math.ceil(items / workers) + reducing }
  },
}

/** Mappers get equal parts of the items, reducers the mapped values by key. The results are in the order of keys. */
export const mapReduce: Pattern<MapReduce> = {
  type: 'map_reduce',
  schema,
  next,
  parts: (node) => [
    ...sourceParts('items', node.items),
    ...workPart('map', node.map, 'map 0'),
    ...workPart('reduce', node.reduce, 'reduce 0'),
    ...workPart('partition', partitionOf(node)),
  ],
  // All parts are worked on like the first.
  partKey: (key) => (/^(map|reduce)/.test(key) ? `${key.split(' ')[0]} 0` : key),
  turnOf: (key) => TURNS.indexOf(key.split(' ')[0] ?? ''),
  check: (node, { addLeaves }) => {
    addLeaves(node.workers + (node.reducers ?? 0))
    return node
  },
  plannedLeaves: ({ workers }) => workers + 1,
  expectedMs: (node, times) => {
    const items = times.count(node.items)
    const parts = Math.min(node.workers, items)
    const each = times.work(node.map, Math.ceil(items / Math.max(1, parts)))
    const mapping = times.atOnce(Array<number>(parts).fill(each))
    return mapping + times.work(partitionOf(node)) + times.work(node.reduce, items)
  },
  pool: ({ workers }) => ({ workers: workerNames(workers), topology: 'star', possible: [], maySwitch: false }),
  functionFields: ['items', 'map', 'reduce', 'partition'],
  suits,
  guide,
}

/** Undefined if Muster spreads the keys over the reducers itself. */
const partitionOf = ({ partition }: MapReduce) =>
  partition === 'hash' || partition === 'range' ? undefined : partition

function next(state: NodeState<MapReduce>): Move {
  const { children, open } = state
  if (open > 0) return 'wait'
  const failure = [...children.values()].find((child) => child?.status === 'failed')
  if (failure) return { end: failed(failure.error ?? 'A part of it failed.') }
  const items = readItems(state)
  if (!Array.isArray(items)) return items
  const maps = among(children, 'map ')
  if (maps.length === 0) return items.length === 0 ? { end: completed([]) } : { start: mapChildren(state, items) }
  const emitted = maps.map(({ value }) => value)
  if (!emitted.every(isPairs)) return reduceAll(state, emitted)
  return reduceByKey(state, grouped(flattened(emitted) as Pair[])) // each outcome is a list of pairs
}

type Pair = [key: string | number, value: unknown]
type Groups = Map<string, { key: string | number; values: unknown[] }>

/** The items are a list, a placeholder, or the result of a function, which is then the first child. */
function readItems({ node, previous, children, render }: NodeState<MapReduce>): unknown[] | Move {
  const source = sourceLeaf(node.items)
  if (!source) {
    const items = render(node.items)
    return Array.isArray(items) ? items : { end: failed(`items must be a list, and it is ${kindOf(items)}.`) }
  }
  const read = children.get('items')
  if (!read) return { start: [{ key: 'items', node: source, previous, isSource: true }] }
  return Array.isArray(read.value)
    ? read.value
    : { end: failed(`The function ${source.function}, which gives the items, gave no list but ${kindOf(read.value)}.`) }
}

function mapChildren({ node, previous }: NodeState<MapReduce>, items: readonly unknown[]): Child[] {
  return sharesOf(items, node.workers).map((part, place) => ({
    key: `map ${place}`,
    node: leafOf(node.map),
    previous,
    item: { items: part },
    part: { of: 'map', place },
  }))
}

const isPairs = (value: unknown): value is Pair[] =>
  Array.isArray(value) &&
  value.every((each) => Array.isArray(each) && each.length === 2 && ['string', 'number'].includes(typeof each[0]))

function grouped(pairs: readonly Pair[]): Groups {
  const groups: Groups = new Map()
  for (const [key, value] of pairs) {
    // The number 1 and the text "1" are two keys.
    const name = JSON.stringify(key)
    const group = groups.get(name)
    if (group) group.values.push(value)
    else groups.set(name, { key, values: [value] })
  }
  return groups
}

/** Values without keys are reduced once. */
function reduceAll({ node, previous, children }: NodeState<MapReduce>, emitted: readonly unknown[]): Move {
  const reduced = children.get('reduce')
  if (reduced) return { end: endOf(reduced.value, children.values()) }
  const values = flattened(emitted)
  return { start: [{ key: 'reduce', node: leafOf(node.reduce), previous, item: { values } }] }
}

function reduceByKey(state: NodeState<MapReduce>, groups: Groups): Move {
  const { node, previous, children } = state
  const keys = [...groups.values()].map((group) => group.key).toSorted(byKey)
  const count = Math.min(node.reducers ?? node.workers, Math.max(1, keys.length))
  const places = placesOf(state, keys, count)
  if (!Array.isArray(places)) return places
  const buckets = Array.from({ length: count }, (): (string | number)[] => [])
  for (const [index, key] of keys.entries()) buckets[places[index] ?? 0]?.push(key)
  const reduces = among(children, 'reduce ')
  if (reduces.length === 0 && keys.length > 0) {
    return {
      start: buckets.flatMap((bucket, place) => {
        if (bucket.length === 0) return []
        const each = bucket.map((key) => groups.get(JSON.stringify(key)))
        return [{ key: `reduce ${place}`, node: leafOf(node.reduce), previous, each, part: { of: 'reduce', place } }]
      }),
    }
  }
  const outputs = new Map<string | number, unknown>()
  const filled = buckets.filter((bucket) => bucket.length > 0)
  for (const [place, { value }] of reduces.entries()) {
    for (const [index, output] of asList(value).entries()) outputs.set(filled[place]?.[index] ?? '', output)
  }
  const values = keys.map((key) => outputs.get(key))
  return { end: endOf(values, children.values()) }
}

/** The reducer of each key; a partition function is asked for all keys at once. */
function placesOf(
  { node, previous, children }: NodeState<MapReduce>,
  keys: readonly (string | number)[],
  count: number,
): number[] | Move {
  const { partition = 'hash' } = node
  if (partition === 'hash') return keys.map((key) => hashOf(key) % count)
  if (partition === 'range') return keys.map((_, index) => Math.floor((index * count) / keys.length))
  const asked = children.get('partition')
  if (!asked) {
    const each = keys.map((key) => ({ key, partitions: count }))
    return { start: [{ key: 'partition', node: leafOf(partition), previous, each }] }
  }
  const places = asList(asked.value).map(Number)
  const wrong = places.findIndex((place) => !Number.isInteger(place) || place < 0 || place >= count)
  if (wrong === -1 && places.length === keys.length) return places
  return { end: failed(`The partition of the key ${JSON.stringify(keys[wrong])} is none of 0 to ${count - 1}.`) }
}

function among(children: ReadonlyMap<string, NodeOutcome | null>, prefix: string): NodeOutcome[] {
  return [...children].flatMap(([key, outcome]) => (key.startsWith(prefix) && outcome ? [outcome] : []))
}

const asList = (value: unknown): unknown[] => (Array.isArray(value) ? value : [value])

const hashOf = (key: string | number): number =>
  createHash('sha256').update(JSON.stringify(key)).digest().readUInt32BE(0)

/** Numbers come before texts, each in their own order. */
function byKey(a: string | number, b: string | number): number {
  if (typeof a !== typeof b) return typeof a === 'number' ? -1 : 1
  return a < b ? -1 : a > b ? 1 : 0
}
