// The JSON that Muster accepts. Values that PostgreSQL cannot store, that JavaScript may read in two ways, or that can
// only do harm are refused, in one further pass over the text; about 10 ns a character.
import { jsonFault } from './json-fault.ts'

export const MAX_DEPTH = 64

/** Thrown with a sentence for the client; the sentence repeats one character of the input at most. */
export class JsonRefused extends Error {}

const REFUSED_KEYS = new Set(['__proto__'])

/** `what` begins the sentence that names the problem. */
export function parseStrictJson(text: string, what = 'The body'): unknown {
  try {
    const value = parse(text)
    inspect(text)
    return value
  } catch (error) {
    throw error instanceof JsonRefused ? new JsonRefused(`${what} ${error.message}`) : error
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    const fault = jsonFault(text)
    throw new JsonRefused(`is not valid JSON.${fault === null ? '' : ` ${fault}`}`)
  }
}

/** Walks text that JSON.parse has accepted, so the grammar need not be checked again. */
function inspect(text: string): void {
  const keysOfOpen: (Set<string> | null)[] = []
  let expectsKey = false
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case 0x7b: // {
        open(keysOfOpen, new Set())
        expectsKey = true
        break
      case 0x5b: // [
        open(keysOfOpen, null)
        expectsKey = false
        break
      case 0x7d: // }
      case 0x5d: // ]
        keysOfOpen.pop()
        expectsKey = false
        break
      case 0x2c: // ,
        expectsKey = keysOfOpen.at(-1) !== null
        break
      case 0x3a: // :
        expectsKey = false
        break
      case 0x22: {
        const end = endOfString(text, at)
        checkString(text, at, end, expectsKey ? (keysOfOpen.at(-1) ?? null) : null)
        at = end
        break
      }
      default:
        at = checkNumber(text, at)
    }
  }
}

function open(stack: (Set<string> | null)[], keys: Set<string> | null): void {
  stack.push(keys)
  if (stack.length > MAX_DEPTH) throw new JsonRefused(`is nested deeper than ${MAX_DEPTH} levels.`)
}

function endOfString(text: string, start: number): number {
  for (let at = start + 1; ; at++) {
    const char = text.charCodeAt(at)
    if (char === 0x5c) at++
    else if (char === 0x22) return at
  }
}

function checkString(text: string, start: number, end: number, keys: Set<string> | null): void {
  const raw = text.slice(start + 1, end)
  const value: string = raw.includes('\\') ? JSON.parse(text.slice(start, end + 1)) : raw
  if (value.includes('\0')) throw new JsonRefused('holds a NUL character, which cannot be stored.')
  if (!value.isWellFormed()) throw new JsonRefused('holds half of a surrogate pair, which is no character.')
  if (!keys) return
  if (keys.has(value)) throw new JsonRefused('names the same property twice.')
  if (REFUSED_KEYS.has(value)) throw new JsonRefused('names a property that is not allowed.')
  keys.add(value)
}

const NUMBER = /-?\d[\d.eE+-]*/y

/** A number too large for a double would silently become null. Returns the end of the number. */
function checkNumber(text: string, at: number): number {
  const char = text.charCodeAt(at)
  if (char !== 0x2d && (char < 0x30 || char > 0x39)) return at
  NUMBER.lastIndex = at
  const number = NUMBER.exec(text)?.[0] ?? ''
  if (!Number.isFinite(Number(number))) throw new JsonRefused('holds a number that is too large.')
  return at + Math.max(number.length, 1) - 1
}
