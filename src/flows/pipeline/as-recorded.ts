import { cleanJson } from '../../journal/clean-json.ts'

export interface Recorded {
  value: unknown
  characters: number
}

/**
 * The value as the journal will tell it: what goes on to the next stage is the same before and after a crash, and
 * nobody's later change to an object gets into it. Throws where it is no JSON.
 */
export function asRecorded(value: unknown): Recorded {
  if (value === undefined || value === null) return { value: null, characters: 4 }
  if (typeof value === 'boolean') return { value, characters: 5 }
  const text = cleanJson(value)
  return { value: JSON.parse(text), characters: text.length }
}
