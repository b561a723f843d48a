// Templates in a flow's values: `{{input.name}}`. One pass, no code: inserted text is never looked at again, and a path
// leads only through properties that the value itself has. The result is measured while it is made: a template that
// stands in many places multiplies its value, and the whole might be more than the process can hold.
import { type JsonSize, jsonSize } from '../kernel/json-size.ts'

/** The values that `{{…}}` may name. */
export interface Scope {
  input: unknown
  previous: unknown
  item?: unknown
  results: Readonly<Record<string, unknown>>
}

const TEMPLATE = /\{\{\s*(input|previous|item|results)((?:\.[^{}.\s]+)*)\s*\}\}/g
const ONE_TEMPLATE = /^\{\{\s*(input|previous|item|results)((?:\.[^{}.\s]+)*)\s*\}\}$/

/** The whole text is one template, whose value keeps its type. */
export const isTemplate = (text: string): boolean => ONE_TEMPLATE.test(text)

/** The largest argument of a leaf, and its largest result. */
export const MOST_BYTES = 16 * 1_048_576
export const MOST_NODES = 1_000_000

/** A value that is too large to be given to anybody. */
export class TooLarge extends Error {}

/** The room that is left for a value while it is made. */
interface Room {
  bytes: number
  nodes: number
  /** The value of a whole-text template may be larger: it is not copied here, and is measured where it is handed on. */
  isForWhole: boolean
}

/**
 * The value with every template in it filled in, however deep it stands. Property names are left as they are. Throws
 * TooLarge as soon as the value takes more than a leaf may be given.
 */
export function render(value: unknown, scope: Scope): unknown {
  return fill(value, scope, { bytes: MOST_BYTES, nodes: MOST_NODES, isForWhole: false })
}

/** The same for a value that a pattern deals out in parts: only the texts that are put together are bounded. */
export function renderParts(value: unknown, scope: Scope): unknown {
  return fill(value, scope, { bytes: MOST_BYTES, nodes: MOST_NODES, isForWhole: true })
}

/** Throws TooLarge where a value that is handed on as it is takes more than a leaf may be given. */
export function requireRoom(value: unknown): void {
  const room = { bytes: MOST_BYTES, nodes: MOST_NODES, isForWhole: false }
  spend(room, jsonSize(value, room))
}

function fill(value: unknown, scope: Scope, room: Room): unknown {
  if (typeof value === 'string') return fillText(value, scope, room)
  if (value === null || typeof value !== 'object') {
    spend(room, jsonSize(value))
    return value
  }
  spend(room, { bytes: 2, nodes: 1 })
  if (Array.isArray(value)) return value.map((each) => fill(each, scope, room))
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => {
      spend(room, { bytes: name.length + 3, nodes: 0 })
      return [name, fill(each, scope, room)]
    }),
  )
}

function fillText(text: string, scope: Scope, room: Room): unknown {
  const one = ONE_TEMPLATE.exec(text)
  if (one) {
    const found = valueAt(scope, one[1], one[2])
    // An unknown path is an empty text.
    const value = found === undefined ? '' : found
    if (!room.isForWhole) spend(room, jsonSize(value, room))
    return value
  }
  spend(room, jsonSize(text))
  return text.replaceAll(TEMPLATE, (_, root: string, path: string) => {
    const value = valueAt(scope, root, path)
    spend(room, jsonSize(value, room))
    return asText(value)
  })
}

function spend(room: Room, { bytes, nodes }: JsonSize): void {
  room.bytes -= bytes
  room.nodes -= nodes
  if (room.bytes < 0) throw new TooLarge(`The argument takes more than ${MOST_BYTES} bytes (16 MiB).`)
  if (room.nodes < 0) throw new TooLarge(`The argument has more than ${MOST_NODES} values.`)
}

/**
 * The results that the templates in a value name: a value that is rendered later must see the results that were there
 * when it was due. Null: all of them.
 */
export function resultsNamed(value: unknown): ReadonlySet<string> | null {
  const names = new Set<string>()
  const waiting: unknown[] = [value]
  while (waiting.length > 0) {
    const next = waiting.pop()
    if (typeof next === 'string') {
      for (const [, root, path = ''] of next.matchAll(TEMPLATE)) {
        if (root !== 'results') continue
        const [, name] = path.split('.', 2)
        if (name === undefined) return null
        names.add(name)
      }
    } else if (next !== null && typeof next === 'object') for (const each of Object.values(next)) waiting.push(each)
  }
  return names
}

function valueAt(scope: Scope, root = '', path = ''): unknown {
  let value: unknown = scope[root as keyof Scope] // the pattern lets only these through
  for (const part of path.split('.').slice(1)) {
    if (value === null || typeof value !== 'object' || !Object.hasOwn(value, part)) return undefined
    value = (value as Record<string, unknown>)[part] // has it, asked above
  }
  return value
}

function asText(value: unknown): string {
  if (value === undefined || value === null) return ''
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
