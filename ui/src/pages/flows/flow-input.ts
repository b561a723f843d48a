import { errorText } from '../../../../src/kernel/error-text.ts'

/** What somebody would type for this input. */
export function textOf(input: unknown): string {
  if (input === null || input === undefined) return ''
  const isPlain =
    typeof input === 'string' && input.trim() !== '' && !/^\s*[{["]/.test(input) && inputOf(input).input === input
  return isPlain ? input : JSON.stringify(input, null, 2)
}

/** The input of a flow from what somebody typed: none, JSON, or a text. A text that begins like JSON must be JSON. */
export function inputOf(text: string): { input?: unknown } {
  const given = text.trim()
  if (given === '') return {}
  try {
    return { input: JSON.parse(given) }
  } catch (error) {
    if (!/^[{["]/.test(given)) return { input: text }
    throw new Error(`The input is no JSON: ${errorText(error)}`, { cause: error })
  }
}
