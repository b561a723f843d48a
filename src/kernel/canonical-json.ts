/** One text per JSON value: keys sorted, no white space. Equal values have the same text, and so has what JSON makes of them. */
export function canonicalJson(value: unknown): string {
  if (value instanceof Date) return canonicalJson(value.toJSON())
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (value !== null && typeof value === 'object') {
    const fields = Object.entries(value)
      .filter(([, field]) => field !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, field]) => `${JSON.stringify(key)}:${canonicalJson(field)}`)
    return `{${fields.join(',')}}`
  }
  return JSON.stringify(value) ?? 'null'
}
