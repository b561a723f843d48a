import { parseJson } from './json-text.ts'

/** What somebody would type for this input. */
export function textOf(input: unknown): string {
  if (input === null || input === undefined) return ''
  const isPlain = typeof input === 'string' && input.trim() !== '' && readBack(input) === input
  return isPlain ? input : JSON.stringify(input, null, 2)
}

function readBack(text: string): unknown {
  const read = inputOf(text)
  return 'problem' in read ? undefined : read.input
}

/** The input of a flow from what somebody typed: none, JSON, or a text. A text that begins like JSON must be JSON. */
export function inputOf(text: string): { input?: unknown } | { problem: string } {
  if (text.trim() === '') return {}
  const parsed = parseJson(text)
  if ('value' in parsed) return { input: parsed.value }
  if (!/^\s*[{["]/.test(text)) return { input: text }
  const { line, column, message } = parsed.problem
  return { problem: `Line ${line}, column ${column}: ${message}` }
}
