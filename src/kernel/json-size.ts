// How large a value is as JSON, without writing it: a value that stands in another a thousand times is small in memory and
// endless as a text, and whoever serialises it to find out has stalled the process already.

export interface JsonSize {
  bytes: number
  /** Texts, numbers, lists, objects and so on, those within others included. */
  nodes: number
}

/** Below this it is counted again: keeping every small object's size would cost more than it saves. */
const WORTH_KEEPING = 64

/** Values are not changed once they are there. */
const known = new WeakMap<object, JsonSize>()

const NO_END: JsonSize = { bytes: Number.POSITIVE_INFINITY, nodes: Number.POSITIVE_INFINITY }

interface Count extends JsonSize {
  most: JsonSize
}

/**
 * Shared parts count as often as they stand there, and are looked through once. Looks no further than to see that it is
 * more than `most`. Plain JSON values only, without cycles.
 */
export function jsonSize(value: unknown, most = NO_END): JsonSize {
  const count = { bytes: 0, nodes: 0, most }
  add(value, count)
  return { bytes: count.bytes, nodes: count.nodes }
}

export const isMore = (size: JsonSize, most: JsonSize): boolean => size.bytes > most.bytes || size.nodes > most.nodes

function add(value: unknown, count: Count): void {
  count.nodes += 1
  if (typeof value === 'string') count.bytes += textBytes(value)
  else if (typeof value === 'number') count.bytes += Number.isInteger(value) && Math.abs(value) < 10 ? 1 : 8
  else if (value === null || typeof value !== 'object') count.bytes += 5
  else addObject(value, count)
}

function addObject(value: object, count: Count): void {
  const before = known.get(value)
  if (before) {
    count.bytes += before.bytes
    count.nodes += before.nodes
    return
  }
  const from = { bytes: count.bytes, nodes: count.nodes }
  count.bytes += 2
  if (Array.isArray(value)) {
    for (const each of value) {
      if (isMore(count, count.most)) return
      count.bytes += 1
      add(each, count)
    }
  } else {
    for (const [name, each] of Object.entries(value)) {
      if (isMore(count, count.most)) return
      count.bytes += textBytes(name) + 2
      add(each, count)
    }
  }
  if (isMore(count, count.most)) return
  const size = { bytes: count.bytes - from.bytes, nodes: count.nodes - from.nodes }
  if (size.nodes >= WORTH_KEEPING) known.set(value, size)
}

const ESCAPED = /["\\\p{Cc}]/u

function textBytes(text: string): number {
  // Nothing is longer than what is refused anyway; a shorter one may take six bytes a character.
  return ESCAPED.test(text) && text.length <= LONGEST_EXACT
    ? Buffer.byteLength(JSON.stringify(text))
    : Buffer.byteLength(text) + 2
}

const LONGEST_EXACT = 64 * 1_048_576
