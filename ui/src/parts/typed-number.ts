/** The content of a number field: a number, an empty text, or a text that is no number yet, such as "-". */
export type TypedNumber = number | string

/** Null for an empty field. A text that is no number is sent as it is, and the API refuses it in words. */
export function typedNumber(value: TypedNumber): number | string | null {
  if (typeof value === 'number') return value
  if (value.trim() === '') return null
  const number = Number(value)
  return Number.isFinite(number) ? number : value
}

/** Seconds in a field are milliseconds in the API. */
export function typedMs(value: TypedNumber): number | string | null {
  const seconds = typedNumber(value)
  return typeof seconds === 'number' ? Math.round(1_000 * seconds) : seconds
}
