// Makes a value of any shape readable: a text, a list, or names with their values.

export type Reading =
  | { type: 'text'; text: string }
  /** A number, a yes or a no, or nothing. */
  | { type: 'plain'; text: string }
  | { type: 'pairs'; pairs: readonly (readonly [name: string, value: unknown])[] }
  | { type: 'list'; items: readonly unknown[] }

export function readValue(value: unknown): Reading {
  if (typeof value === 'string') {
    const given = jsonIn(value)
    return given === undefined ? { type: 'text', text: value } : readValue(given)
  }
  if (Array.isArray(value)) return value.length === 0 ? { type: 'plain', text: 'none' } : { type: 'list', items: value }
  if (typeof value === 'object' && value !== null) {
    const pairs = Object.entries(value)
    return pairs.length === 0 ? { type: 'plain', text: 'nothing' } : { type: 'pairs', pairs }
  }
  if (typeof value === 'boolean') return { type: 'plain', text: value ? 'yes' : 'no' }
  return { type: 'plain', text: value === null || value === undefined ? '–' : String(value) }
}

/** The object or list that a text is as a whole: agents with a fixed answer give JSON as their text. */
function jsonIn(text: string): object | undefined {
  if (!/^\s*[{[]/.test(text)) return undefined
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

/** "expected_duration" as people write it. */
export const wordsOf = (name: string): string => {
  const words = name.replaceAll(/_+/g, ' ').trim()
  return words === '' ? name : words
}
