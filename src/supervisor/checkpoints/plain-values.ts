// The text in which checkpoints keep values: plain JSON, bytes, undefined and minus zero come back exactly as they
// were; everything else is refused with the path to it. LangGraph's own serialiser drops functions, turns dates into
// texts, and calls the constructor that a plain `{lc: 1, type: 'constructor'}` names.

/** LangGraph's own classes that a checkpoint may contain. */
export type OwnClass = 'Send' | 'Overwrite' | 'DeltaSnapshot'

export interface Encoding {
  /** The value, or each value of a list, may be of this class; it is kept as a plain object that LangGraph accepts. */
  own?: OwnClass
  /** PostgreSQL reads the texts within this value, so the texts must be valid for PostgreSQL, too. */
  isRead?: boolean
}

/** A shared part counts as often as it occurs, because a small value with shared parts may be huge as a text. */
const MOST_VALUES = 1_000_000
const MOST_CHARACTERS = 64 * 1_048_576
const DEEPEST = 200

/** The key of an object that stands for a value that JSON does not have. */
const MARK = '$kept'
const UNDEFINED = `{"${MARK}":"undefined"}`
const MINUS_ZERO = `{"${MARK}":"-0"}`

interface Walk extends Encoding {
  /** The name of the value and the keys to the part that is being checked. */
  path: (string | number)[]
  /** The objects around the part that is being checked. */
  around: object[]
  values: number
  characters: number
  /** True after a value that JSON.stringify would lose, or that must not be read as a mark. */
  needsMarks: boolean
}

/** Every path in a refusal begins with `name`. */
export function encodeValue(name: string, value: unknown, encoding: Encoding = {}): string {
  const walk: Walk = { ...encoding, path: [name], around: [], values: 0, characters: 0, needsMarks: false }
  check(value, walk)
  return walk.needsMarks ? withMarks(value) : JSON.stringify(value)
}

export function decodeValue(text: string): unknown {
  const value: unknown = JSON.parse(text)
  return text.includes(`"${MARK}"`) ? unmarked(value) : value
}

export function decodeFields(text: string): Record<string, unknown> {
  const fields: Record<string, unknown> = JSON.parse(text)
  return text.includes(`"${MARK}"`) ? unmarkFields(fields) : fields
}

function check(value: unknown, walk: Walk): void {
  if (++walk.values > MOST_VALUES) throw refused(walk, `would hold more than ${MOST_VALUES} values`)
  if (typeof value === 'string') checkText(value, walk)
  else if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw refused(walk, `is ${value}`)
    if (Object.is(value, -0)) walk.needsMarks = true
  } else if (value === undefined) walk.needsMarks = true
  else if (typeof value === 'object') {
    if (value !== null) checkObject(value, walk)
  } else if (typeof value !== 'boolean') throw refused(walk, `is a ${typeof value}`)
}

function checkText(text: string, walk: Walk): void {
  walk.characters += text.length
  if (walk.characters > MOST_CHARACTERS) throw refused(walk, `would hold more than ${MOST_CHARACTERS} characters`)
  if (walk.isRead && (text.includes('\0') || !text.isWellFormed())) {
    throw refused(walk, 'holds NUL or half of a surrogate pair')
  }
}

function checkObject(value: object, walk: Walk): void {
  if (walk.around.includes(value)) throw refused(walk, 'holds itself')
  if (walk.around.length === DEEPEST) throw refused(walk, `is more than ${DEEPEST} levels deep`)
  walk.around.push(value)
  if (Array.isArray(value)) checkList(value, walk)
  else if (Object.getPrototypeOf(value) === Object.prototype) checkFields(value, walk)
  else if (value instanceof Uint8Array && Object.getPrototypeOf(value) === Uint8Array.prototype) {
    walk.needsMarks = true
    walk.characters += value.length
  } else if (walk.around.length <= 2 && isOwn(value) && value.lg_name === walk.own) {
    walk.needsMarks = true
    checkFields(plainOf(value), walk)
  } else throw refused(walk, `is ${kindOf(value)}`)
  walk.around.pop()
}

function checkList(list: readonly unknown[], walk: Walk): void {
  if (!hasOnlyPlaces(list)) throw refused(walk, 'is a list with holes, or with fields beside its elements')
  for (let place = 0; place < list.length; place++) {
    walk.path.push(place)
    check(list[place], walk)
    walk.path.pop()
  }
}

function hasOnlyPlaces(list: readonly unknown[]): boolean {
  // The indexes of a list come first, in their order.
  const keys = Object.keys(list)
  const isWhole = keys.length === list.length && (list.length === 0 || keys.at(-1) === String(list.length - 1))
  const isPlain = Object.getPrototypeOf(list) === Array.prototype && Object.getOwnPropertySymbols(list).length === 0
  return isWhole && isPlain
}

function checkFields(value: object, walk: Walk): void {
  for (const key of Reflect.ownKeys(value)) {
    if (typeof key === 'symbol') throw refused(walk, `has the key ${String(key)}, a symbol`)
    walk.path.push(key)
    const field = Object.getOwnPropertyDescriptor(value, key)
    if (!field?.enumerable || field.get || field.set) throw refused(walk, 'is not a plain field')
    if (key === MARK) walk.needsMarks = true
    checkText(key, walk)
    check(field.value, walk)
    walk.path.pop()
  }
}

/** JSON.stringify for values that need marks. `check` has accepted the values. */
function withMarks(value: unknown): string {
  if (value === undefined) return UNDEFINED
  if (Object.is(value, -0)) return MINUS_ZERO
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(withMarks).join(',')}]`
  if (value instanceof Uint8Array) return `{"${MARK}":"bytes","of":"${Buffer.from(value).toString('base64')}"}`
  const fields = Object.entries(isOwn(value) ? plainOf(value) : value)
  const text = `{${fields.map(([key, field]) => `${JSON.stringify(key)}:${withMarks(field)}`).join(',')}}`
  return Object.hasOwn(value, MARK) ? `{"${MARK}":"object","of":${text}}` : text
}

/** Replaces the marks within a value that was just parsed. */
function unmarked(value: unknown): unknown {
  if (value === null || typeof value !== 'object') return value
  // No other code has this value yet, so it may be changed in place.
  const held = value as Record<string, unknown>
  if (!Object.hasOwn(held, MARK)) return unmarkFields(held)
  switch (held[MARK]) {
    case 'undefined':
      return undefined
    case '-0':
      return -0
    case 'bytes':
      return Uint8Array.from(Buffer.from(String(held.of), 'base64'))
    case 'object':
      return unmarkFields(held.of as Record<string, unknown>) // as written by withMarks
    default:
      throw new Error(`a checkpoint holds the unknown mark ${JSON.stringify(held[MARK])}`)
  }
}

function unmarkFields(held: Record<string, unknown>): Record<string, unknown> {
  for (const key of Object.keys(held)) held[key] = unmarked(held[key])
  return held
}

/** Recognises classes as LangGraph does, because more than one copy of the library may be loaded. */
interface Own {
  lg_name: OwnClass
}

const OWN: ReadonlySet<unknown> = new Set<OwnClass>(['Send', 'Overwrite', 'DeltaSnapshot'])

const isOwn = (value: object): value is Own =>
  'lg_name' in value && OWN.has(value.lg_name) && Object.getPrototypeOf(value) !== Object.prototype

/** The plain object that LangGraph accepts in place of its own object. */
function plainOf(value: Own): object {
  switch (value.lg_name) {
    case 'Send': {
      const { node, args, timeout } = value as unknown as { node: unknown; args: unknown; timeout: unknown }
      return timeout === undefined ? { node, args } : { node, args, timeout }
    }
    case 'Overwrite':
      return { __overwrite__: (value as unknown as { value: unknown }).value }
    case 'DeltaSnapshot':
      return { lg_name: value.lg_name, value: (value as unknown as { value: unknown }).value }
  }
}

function kindOf(value: object): string {
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === null) return 'an object without a prototype'
  const { name } = value.constructor ?? {}
  return name ? `an instance of ${name}` : 'an instance of a class'
}

function refused({ path, isRead }: Walk, why: string): TypeError {
  const [name = '', ...keys] = path
  const place = keys.map((key) => (typeof key === 'number' ? `[${key}]` : `.${key}`)).join('')
  const rule = isRead ? 'plain JSON values' : 'plain JSON values and Uint8Array'
  return new TypeError(`${name}${place} ${why}. Checkpoints take ${rule} only.`)
}
