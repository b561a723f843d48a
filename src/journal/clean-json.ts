const SUSPECT = /\\u(?:0000|d[89a-f])/i

/** JSON that PostgreSQL can store: NUL and halves of surrogate pairs become the replacement character. */
export function cleanJson(value: unknown): string {
  const text = JSON.stringify(value)
  // Few texts have such escapes at all, and a plain search is several times faster than the expression.
  return text.includes('\\u') && SUSPECT.test(text) ? JSON.stringify(clean(value)) : text
}

function clean(value: unknown): unknown {
  if (typeof value === 'string') return cleanText(value)
  if (Array.isArray(value)) return value.map(clean)
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [cleanText(key), clean(field)]))
}

export const cleanText = (text: string): string => text.toWellFormed().replaceAll('\0', '\ufffd')
