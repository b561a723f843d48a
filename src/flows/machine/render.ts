// Fills in the placeholders in a flow's values (placeholders.ts). One pass, no code: inserted text is never looked at
// again, and a path leads only through properties that the value itself has. A value that is not there is an error,
// because a text with a gap looks like a result. The result is measured while it is made: a placeholder that stands in
// many places multiplies its value, and the whole might be more than the process can hold.
import { type JsonSize, jsonSize } from '../../kernel/json-size.ts'
import { LARGEST_VALUE_BYTES } from '../../kernel/limits.ts'
import {
  BRACES,
  LONGEST_SHOWN,
  onlyPlaceholder,
  type Placeholder,
  placeholdersIn,
  type Root,
  readPlaceholder,
} from './placeholders.ts'

export interface Scope {
  input: unknown
  previous: unknown
  item?: unknown
  results: Readonly<Record<string, unknown>>
}

/** The most JSON values in an argument of a leaf, and in its result. */
export const MOST_NODES = 1_000_000

/** An argument that is too large to be handed on. */
export class TooLarge extends Error {}

/** A placeholder names a value that is not there. */
export class MissingValue extends Error {
  /** True if a result may come later. Input, previous and item stay as they are in every attempt. */
  readonly mayCome: boolean

  constructor(message: string, root: Root) {
    super(message)
    this.mayCome = root === 'results'
  }
}

/** The room that is left for a value while it is made. */
interface Room {
  bytes: number
  nodes: number
  /**
   * True: the value of a whole-text placeholder may be larger. It is not copied here, and it is measured when it is
   * handed on.
   */
  isForWhole: boolean
}

/**
 * The value with every placeholder in it filled in, at any depth. Property names are left as they are. Throws TooLarge
 * as soon as the value takes more than a leaf may be given, and MissingValue for a placeholder whose value is not
 * there.
 */
export function render(value: unknown, scope: Scope): unknown {
  return fill(value, scope, { bytes: LARGEST_VALUE_BYTES, nodes: MOST_NODES, isForWhole: false })
}

/**
 * Fills in the placeholders of a value that a pattern deals out in parts: only texts with placeholders inside them are
 * bounded.
 */
export function renderParts(value: unknown, scope: Scope): unknown {
  return fill(value, scope, { bytes: LARGEST_VALUE_BYTES, nodes: MOST_NODES, isForWhole: true })
}

/** Throws TooLarge if a value that is handed on unchanged takes more than a leaf may be given. */
export function requireRoom(value: unknown): void {
  const room = { bytes: LARGEST_VALUE_BYTES, nodes: MOST_NODES, isForWhole: false }
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
  if (!text.includes('{{')) {
    spend(room, jsonSize(text))
    return text
  }
  const one = onlyPlaceholder(text)
  if (one) {
    const value = readValue(one, text, scope) ?? null
    if (!room.isForWhole) spend(room, jsonSize(value, room))
    return value
  }
  spend(room, jsonSize(text))
  return text.replaceAll(BRACES, (braces, inner: string) => {
    const placeholder = readPlaceholder(inner)
    if (!placeholder || 'wrong' in placeholder) return braces
    const value = readValue(placeholder, braces, scope)
    spend(room, jsonSize(value, room))
    return asText(value)
  })
}

/** Undefined where the value may be missing and is not there. `text`: the placeholder as people wrote it. */
function readValue(placeholder: Placeholder, text: string, scope: Scope): unknown {
  const found = find(placeholder, scope)
  if (!('missing' in found)) return found.value
  if (placeholder.isOptional) return undefined
  throw new MissingValue(`${text.slice(0, LONGEST_SHOWN)} is not there: ${found.missing}.`, placeholder.root)
}

/**
 * The value that a text names where the text is one placeholder; undefined where it is none, or the value is not there.
 */
export function valueNamed(text: string, scope: Scope): unknown {
  const placeholder = onlyPlaceholder(text)
  const found = placeholder && find(placeholder, scope)
  return found && !('missing' in found) ? found.value : undefined
}

/** True: a placeholder of the value names what is not there and can never come, so every attempt fails. */
export const isHopeless = (value: unknown, scope: Scope): boolean =>
  placeholdersIn(value).some(({ placeholder }) => {
    if ('wrong' in placeholder || placeholder.isOptional || placeholder.root === 'results') return false
    return 'missing' in find(placeholder, scope)
  })

function spend(room: Room, { bytes, nodes }: JsonSize): void {
  room.bytes -= bytes
  room.nodes -= nodes
  if (room.bytes < 0) throw new TooLarge(`The argument takes more than ${LARGEST_VALUE_BYTES} bytes (16 MiB).`)
  if (room.nodes < 0) throw new TooLarge(`The argument has more than ${MOST_NODES} values.`)
}

/**
 * The names of the results in the placeholders of a value. A value that is rendered later must see the results that
 * were there when it was due. Null: all results.
 */
export function resultsNamed(value: unknown): ReadonlySet<string> | null {
  const names = new Set<string>()
  for (const { placeholder } of placeholdersIn(value)) {
    if ('wrong' in placeholder || placeholder.root !== 'results') continue
    const [name] = placeholder.path
    if (name === undefined) return null
    names.add(name)
  }
  return names
}

type Found = { value: unknown } | { missing: string }

/** A flow without input has the input null, and the first step has the previous value null. */
function find({ root, path }: Placeholder, scope: Scope): Found {
  if (root === 'item' && scope.item === undefined) return { missing: 'this leaf is not about one item among several' }
  let value: unknown = scope[root] ?? null
  for (const [place, name] of path.entries()) {
    if (value === null || typeof value !== 'object' || !Object.hasOwn(value, name)) {
      return { missing: missing(root, path.slice(0, place), name, value) }
    }
    value = (value as Record<string, unknown>)[name] ?? null // has it, asked above
  }
  return { value }
}

function missing(root: string, way: readonly string[], name: string, value: unknown): string {
  if (root === 'results' && way.length === 0) return `${name} has given no result so far`
  return `${way.length === 0 && root !== 'previous' ? `the ${root}` : [root, ...way].join('.')} ${contents(value)}`
}

const MOST_NAMES = 10
const LONGEST_NAME = 50

/** Lists the names that the value has instead of the one that was looked for. */
function contents(value: unknown): string {
  if (value === null) return 'is null'
  if (Array.isArray(value)) return `is a list of ${value.length}`
  if (typeof value !== 'object') return `is a ${typeof value === 'string' ? 'text' : typeof value}`
  const names = Object.keys(value)
  if (names.length === 0) return 'has no properties'
  const shown = names.slice(0, MOST_NAMES).map((name) => name.slice(0, LONGEST_NAME))
  const more = names.length > shown.length ? ` and ${names.length - shown.length} more` : ''
  return `has ${shown.join(', ')}${more}`
}

function asText(value: unknown): string {
  if (value === undefined || value === null) return ''
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
