import { createHash } from 'node:crypto'
import type { MapReduce } from '../../kernel/flow.ts'
import {
  type Child,
  completed,
  endOf,
  failed,
  flattened,
  leafOf,
  type Move,
  type Outcome,
  type Pattern,
  type Standing,
} from '../pattern.ts'

/** Mappers get equal parts of the items, reducers the mapped values by key; the results are in the order of keys. */
export const mapReduce: Pattern<MapReduce> = (standing) => {
  const { children, open } = standing
  if (open > 0) return 'wait'
  const failure = [...children.values()].find((child) => child?.status === 'failed')
  if (failure) return { end: failed(failure.error ?? 'A part of it failed.') }
  const items = readItems(standing)
  if (!Array.isArray(items)) return items
  const maps = among(children, 'map ')
  if (maps.length === 0) return items.length === 0 ? { end: completed([]) } : { start: mapChildren(standing, items) }
  const emitted = maps.map(({ value }) => value)
  if (!emitted.every(isPairs)) return reduceAll(standing, emitted)
  return reduceByKey(standing, grouped(flattened(emitted) as Pair[])) // each of them is a list of pairs
}

type Pair = [key: string | number, value: unknown]
type Groups = Map<string, { key: string | number; values: unknown[] }>

/** The items are a list, a template, or the result of a function, which is then the first child. */
function readItems({ node, previous, children, render }: Standing<MapReduce>): unknown[] | Move {
  const source = sourceLeaf(node.items)
  if (!source) {
    const items = render(node.items)
    return Array.isArray(items) ? items : { end: failed('items is no list.') }
  }
  const read = children.get('items')
  if (!read) return { start: [{ key: 'items', node: source, previous, isSource: true }] }
  return Array.isArray(read.value) ? read.value : { end: failed('The function that gives the items gave no list.') }
}

/** A text that is no template is the name of a function. */
export function sourceLeaf(source: unknown) {
  if (typeof source === 'string') return source.includes('{{') ? null : leafOf(source)
  if (source === null || typeof source !== 'object' || !('function' in source)) return null
  const { function: name, args } = source as { function: string; args?: unknown } // checked by validateFlow
  return { type: 'task' as const, function: name, ...(args === undefined ? {} : { args }) }
}

function mapChildren({ node, previous }: Standing<MapReduce>, items: readonly unknown[]): Child[] {
  return partsOf(items, node.workers).map((part, place) => ({
    key: `map ${place}`,
    node: leafOf(node.map),
    previous,
    item: { items: part },
  }))
}

/** The parts are contiguous, their lengths differ by one at most, and none is empty. */
export function partsOf<Item>(items: readonly Item[], count: number): Item[][] {
  const parts = Math.min(count, items.length)
  const at = (place: number): number => Math.floor((place * items.length) / parts)
  return Array.from({ length: parts }, (_, place) => items.slice(at(place), at(place + 1)))
}

const isPairs = (value: unknown): value is Pair[] =>
  Array.isArray(value) &&
  value.every((each) => Array.isArray(each) && each.length === 2 && ['string', 'number'].includes(typeof each[0]))

function grouped(pairs: readonly Pair[]): Groups {
  const groups: Groups = new Map()
  for (const [key, value] of pairs) {
    // 1 and "1" are two keys.
    const name = JSON.stringify(key)
    const group = groups.get(name)
    if (group) group.values.push(value)
    else groups.set(name, { key, values: [value] })
  }
  return groups
}

/** Values without keys are reduced once. */
function reduceAll({ node, previous, children }: Standing<MapReduce>, emitted: readonly unknown[]): Move {
  const reduced = children.get('reduce')
  if (reduced) return { end: endOf(reduced.value, children.values()) }
  const values = flattened(emitted)
  return { start: [{ key: 'reduce', node: leafOf(node.reduce), previous, item: { values } }] }
}

function reduceByKey(standing: Standing<MapReduce>, groups: Groups): Move {
  const { node, previous, children } = standing
  const keys = [...groups.values()].map((group) => group.key).toSorted(byKey)
  const count = Math.min(node.reducers ?? node.workers, Math.max(1, keys.length))
  const places = placesOf(standing, keys, count)
  if (!Array.isArray(places)) return places
  const buckets = Array.from({ length: count }, (): (string | number)[] => [])
  for (const [index, key] of keys.entries()) buckets[places[index] ?? 0]?.push(key)
  const reduces = among(children, 'reduce ')
  if (reduces.length === 0 && keys.length > 0) {
    return {
      start: buckets.flatMap((bucket, place) => {
        if (bucket.length === 0) return []
        const each = bucket.map((key) => groups.get(JSON.stringify(key)))
        return [{ key: `reduce ${place}`, node: leafOf(node.reduce), previous, each }]
      }),
    }
  }
  const outputs = new Map<string | number, unknown>()
  const filled = buckets.filter((bucket) => bucket.length > 0)
  for (const [place, { value }] of reduces.entries()) {
    for (const [index, output] of asList(value).entries()) outputs.set(filled[place]?.[index] ?? '', output)
  }
  return {
    end: endOf(
      keys.map((key) => outputs.get(key)),
      children.values(),
    ),
  }
}

/** The reducer of each key; a partition function is asked for all keys at once. */
function placesOf(
  { node, previous, children }: Standing<MapReduce>,
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

function among(children: ReadonlyMap<string, Outcome | null>, prefix: string): Outcome[] {
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
