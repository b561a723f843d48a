import { cleanJson } from '../../journal/clean-json.ts'

export interface RecordedValue {
  value: unknown
  characters: number
}

/**
 * The value as the journal will hold it: the next stage gets the same value before and after a crash. Throws if the
 * value is no JSON.
 */
export function asRecorded(value: unknown): RecordedValue {
  if (value === undefined || value === null) return { value: null, characters: 4 }
  if (typeof value === 'boolean') return { value, characters: 5 }
  const text = cleanJson(value)
  return { value: JSON.parse(text), characters: text.length }
}
