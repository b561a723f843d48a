import { errorText } from '../../../../src/kernel/error-text.ts'

/** The input of a run from what a person typed: the text itself, or a JSON object. */
export function readInput(text: string, format: 'text' | 'json'): { input: unknown } | { problem: string } {
  if (format === 'text') return { input: text }
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? { input: value }
      : { problem: 'It must be a JSON object, such as {"topic": "rain"}.' }
  } catch (error) {
    return { problem: `This is no JSON: ${errorText(error)}` }
  }
}
