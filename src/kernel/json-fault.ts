// Finds the place at which a text stops being JSON. JSON.parse seldom names it, and repeats the text around it, which
// may hold a secret. Walks the text once, without recursion, after JSON.parse has refused it.

interface Fault {
  at: number
  expected: string
}

const VALUE = 'a value'
const NAME = 'a property name in double quotes'
const END = 'the end'

/** `Line 2, column 7: a value was expected, and "}" was found.` Null if the text is JSON. */
export function jsonFault(text: string): string | null {
  const fault = findFault(text)
  if (!fault) return null
  const before = text.slice(0, fault.at)
  const line = before.split('\n').length
  const column = fault.at - before.lastIndexOf('\n')
  return `Line ${line}, column ${column}: ${fault.expected} was expected, and ${shown(text, fault.at)} was found.`
}

function shown(text: string, at: number): string {
  const code = text.codePointAt(at)
  if (code === undefined) return END
  const isPlain = /^[^\p{C}\p{Z}]$/u.test(String.fromCodePoint(code))
  return isPlain ? JSON.stringify(String.fromCodePoint(code)) : `the character U+${code.toString(16).padStart(4, '0')}`
}

const SPACE = /[ \t\n\r]*/y
const LITERAL = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y

function findFault(text: string): Fault | null {
  /** The closing brackets that are due, the innermost last. */
  const open: ('}' | ']')[] = []
  let at = after(SPACE, text, 0)
  /** True if a value is due at `at`; otherwise a value has just ended. */
  let isValueDue = true
  for (;;) {
    if (isValueDue) {
      const char = text[at]
      if (char === '{' || char === '[') {
        const close = char === '{' ? '}' : ']'
        at = after(SPACE, text, at + 1)
        if (text[at] === close) {
          at++
          isValueDue = false
        } else {
          open.push(close)
          if (close === ']') continue
          const named = readName(text, at)
          if (typeof named !== 'number') return text[at] === '"' ? named : { ...named, expected: `${NAME} or "}"` }
          at = named
        }
        continue
      }
      const end = char === '"' ? readString(text, at) : after(LITERAL, text, at)
      if (typeof end !== 'number') return end
      if (end === at) return { at, expected: text[at] === ']' && text[at - 1] === '[' ? `${VALUE} or "]"` : VALUE }
      at = end
      isValueDue = false
      continue
    }
    at = after(SPACE, text, at)
    const close = open.at(-1)
    if (close === undefined) return at === text.length ? null : { at, expected: END }
    if (text[at] === close) {
      open.pop()
      at++
      continue
    }
    if (text[at] !== ',') return { at, expected: `"," or "${close}"` }
    at = after(SPACE, text, at + 1)
    isValueDue = true
    if (close === ']') continue
    const named = readName(text, at)
    if (typeof named !== 'number') return named
    at = named
  }
}

/** The place of the value behind a name and its colon. */
function readName(text: string, at: number): number | Fault {
  if (text[at] !== '"') return { at, expected: NAME }
  const end = readString(text, at)
  if (typeof end !== 'number') return end
  const colon = after(SPACE, text, end)
  return text[colon] === ':' ? after(SPACE, text, colon + 1) : { at: colon, expected: '":"' }
}

const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y

/** The place behind the string that begins here. */
function readString(text: string, start: number): number | Fault {
  for (let at = start + 1; ; ) {
    const code = text.charCodeAt(at)
    if (Number.isNaN(code)) return { at, expected: 'the double quote that ends a text' }
    if (code === 0x22) return at + 1
    if (code < 0x20) return { at, expected: 'the double quote that ends a text, or an escaped character,' }
    if (code !== 0x5c) {
      at++
      continue
    }
    const end = after(ESCAPE, text, at)
    if (end === at) return { at: at + 1, expected: 'an escape such as \\n or \\u0041' }
    at = end
  }
}

/** The place behind a match that begins here, or this place. */
function after(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : at
}
