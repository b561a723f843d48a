// A tool's result as JSON. One walk checks it and bounds its size; only a value that may be too large is serialised.
import { MAX_DEPTH } from '../kernel/strict-json.ts'

export type JsonResult =
  | { ok: true; value: unknown; rawBytes?: number }
  /** `reason` completes "The result of the tool …". */
  | { ok: false; reason: string; rawBytes?: number }

export function toJsonResult(value: unknown, limitBytes: number): JsonResult {
  if (value === undefined) return { ok: true, value: null }
  if (typeof value === 'string') return cutString(value, limitBytes)
  try {
    const walk: Walk = { upperBytes: 0, nodes: 0, needsCopy: false, ancestors: [] }
    measure(value, walk)
    if (!walk.needsCopy && walk.upperBytes <= limitBytes) return { ok: true, value }
    return cutJson(walk.needsCopy ? copy(value, 1) : value, limitBytes, walk)
  } catch (error) {
    if (error instanceof NotJson) return { ok: false, reason: error.message, ...error.facts }
    // A getter that throws, or a text longer than a string can be.
    return { ok: false, reason: `cannot be read as JSON: ${error instanceof Error ? error.message : String(error)}` }
  }
}

/** The first `limitBytes` of a text, never half a character, with a marker that says how much is missing. */
export function cutToBytes(text: string, limitBytes: number, what = ''): { text: string; rawBytes?: number } {
  if (text.length * 3 <= limitBytes) return { text }
  const rawBytes = Buffer.byteLength(text)
  if (rawBytes <= limitBytes) return { text }
  const marker = `\n[cut: only the beginning is shown, ${what}${rawBytes} bytes in all]`
  const room = Math.max(0, limitBytes - marker.length)
  const head = Buffer.from(text.slice(0, room))
  let end = Math.min(room, head.length)
  while (end > 0 && end < head.length && ((head[end] ?? 0) & 0xc0) === 0x80) end -= 1
  return { text: head.toString('utf8', 0, end) + marker, rawBytes }
}

function cutString(text: string, limitBytes: number): JsonResult {
  const cut = cutToBytes(text, limitBytes)
  return { ok: true, value: cut.text, ...(cut.rawBytes === undefined ? {} : { rawBytes: cut.rawBytes }) }
}

function cutJson(value: unknown, limitBytes: number, walk: Walk): JsonResult {
  if (walk.upperBytes <= limitBytes) return { ok: true, value }
  const cut = cutToBytes(JSON.stringify(value), limitBytes, 'as JSON ')
  return cut.rawBytes === undefined ? { ok: true, value } : { ok: true, value: cut.text, rawBytes: cut.rawBytes }
}

interface Walk {
  upperBytes: number
  nodes: number
  /** True if the value holds parts that JSON leaves out, or that are nested too deeply. */
  needsCopy: boolean
  ancestors: object[]
}

/** Shared parts count as often as they are met: a small graph can be an endless text. */
const MAX_NODES = 1_000_000
// A character that JSON escapes takes six bytes.
const BYTES_PER_CHARACTER = 6
const DEEP = `[cut: nested deeper than ${MAX_DEPTH} levels]`

class NotJson extends Error {
  readonly facts: { rawBytes?: number }

  constructor(reason: string, facts: { rawBytes?: number } = {}) {
    super(reason)
    this.facts = facts
  }
}

function measure(value: unknown, walk: Walk): void {
  walk.nodes += 1
  if (walk.nodes > MAX_NODES) throw new NotJson(`has more than ${MAX_NODES} values`)
  switch (typeof value) {
    case 'string':
      walk.upperBytes += value.length * BYTES_PER_CHARACTER + 3
      return
    case 'boolean':
      walk.upperBytes += 6
      return
    case 'number':
      if (!Number.isFinite(value)) throw new NotJson(`holds ${value}, which is no JSON number`)
      walk.upperBytes += 26
      return
    case 'undefined':
      walk.needsCopy = true
      walk.upperBytes += 5
      return
    case 'object':
      if (value === null) walk.upperBytes += 5
      else measureObject(value, walk)
      return
    default:
      throw new NotJson(`holds a ${typeof value}, which is not JSON`)
  }
}

function measureObject(value: object, walk: Walk): void {
  if (walk.ancestors.includes(value)) throw new NotJson('refers to itself, which JSON cannot')
  if (walk.ancestors.length === MAX_DEPTH) {
    walk.needsCopy = true
    walk.upperBytes += DEEP.length + 3
    return
  }
  walk.ancestors.push(value)
  walk.upperBytes += 3
  if (Array.isArray(value)) {
    for (const item of value) measure(item, walk)
  } else {
    requirePlain(value)
    for (const [key, field] of Object.entries(value)) {
      walk.upperBytes += key.length * BYTES_PER_CHARACTER + 4
      measure(field, walk)
    }
  }
  walk.ancestors.pop()
}

/** A class instance would come out as something else than it is: a Date as text, a Map as {}. */
function requirePlain(value: object): void {
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) {
    throw new NotJson(`holds binary data (${value.byteLength} bytes): return text, or say what it is`, {
      rawBytes: value.byteLength,
    })
  }
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === null || Object.getPrototypeOf(prototype) === null) return
  throw new NotJson(`holds a ${value.constructor?.name || 'class instance'}, which is not JSON`)
}

function copy(value: unknown, depth: number): unknown {
  if (value === undefined) return null
  if (value === null || typeof value !== 'object') return value
  if (depth > MAX_DEPTH) return DEEP
  if (Array.isArray(value)) return value.map((item) => copy(item, depth + 1))
  const fields = Object.entries(value).filter(([, field]) => field !== undefined)
  return Object.fromEntries(fields.map(([key, field]) => [key, copy(field, depth + 1)]))
}
