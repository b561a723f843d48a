/** Names the kind of a JSON value, for a sentence about a value that should be something else. Never shows the value. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return 'null'
  if (Array.isArray(value)) return `a list of ${value.length}`
  switch (typeof value) {
    case 'string':
      return `a text of ${value.length} characters`
    case 'number':
      return 'a number'
    case 'boolean':
      return String(value)
    default:
      return 'an object'
  }
}
