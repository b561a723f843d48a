// The size of a value as JSON, without writing it: a value that occurs a thousand times within another is small in
// memory and endless as a text, and serialising it would stall the process.

export interface JsonSize {
  bytes: number
  /** The number of texts, numbers, lists, objects and so on, those within others included. */
  nodes: number
}

/** Objects with fewer nodes are counted again: keeping every small object's size would cost more than it saves. */
const WORTH_KEEPING = 64

/** Sizes can be kept because values do not change once they exist. */
const known = new WeakMap<object, JsonSize>()

const NO_END: JsonSize = { bytes: Number.POSITIVE_INFINITY, nodes: Number.POSITIVE_INFINITY }

interface Count extends JsonSize {
  most: JsonSize
}

/** Shared parts count as often as they occur, and are walked once. Ends above `most`. For plain JSON without cycles. */
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
    const fields = value as Readonly<Record<string, unknown>> // plain JSON, by the contract
    for (const name of Object.keys(fields)) {
      if (isMore(count, count.most)) return
      count.bytes += textBytes(name) + 2
      add(fields[name], count)
    }
  }
  if (isMore(count, count.most)) return
  const size = { bytes: count.bytes - from.bytes, nodes: count.nodes - from.nodes }
  if (size.nodes >= WORTH_KEEPING) known.set(value, size)
}

const ESCAPED = /["\\\p{Cc}]/u

function textBytes(text: string): number {
  if (text.length <= SHORT && isPlain(text)) return text.length + 2
  // A text longer than this is refused anyway; in a shorter one a character may take six bytes.
  return ESCAPED.test(text) && text.length <= LONGEST_EXACT
    ? Buffer.byteLength(JSON.stringify(text))
    : Buffer.byteLength(text) + 2
}

const LONGEST_EXACT = 64 * 1_048_576

/** For a text up to this length a loop is faster than the calls that count the bytes of any text. */
const SHORT = 64

/** True if each character is one byte of JSON. */
function isPlain(text: string): boolean {
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code < 0x20 || code > 0x7e || code === QUOTE || code === BACKSLASH) return false
  }
  return true
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
