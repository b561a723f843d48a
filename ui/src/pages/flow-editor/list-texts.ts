// Lists that are written as one text: workers as a number or as names, edges as lines.

/** A number, or names between commas. The text is kept as it is typed, spaces included. */
export function workersOf(text: string): number | string[] | undefined {
  if (text.trim() === '') return undefined
  if (/^\s*\d+\s*$/.test(text)) return Number(text)
  return text.split(',').map((name) => name.trimStart())
}

export function workersText(value: unknown): string {
  if (Array.isArray(value)) return value.map(String).join(', ')
  return value === undefined ? '' : String(value)
}

/** One edge in each line: from > to. */
export function edgesOf(text: string): string[][] | undefined {
  if (text === '') return undefined
  return text.split('\n').map((line) => line.split('>').map((name) => name.trim()))
}

export const edgesText = (value: unknown): string =>
  Array.isArray(value)
    ? value.map((edge: unknown) => (Array.isArray(edge) ? edge.map(String).join(' > ') : String(edge))).join('\n')
    : ''
