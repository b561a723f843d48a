import { errorText } from '../../../../src/kernel/error-text.ts'

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
