/** The text in a cell of a table. */
export const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll(/\s*\n\s*/g, ' ')

export const json = (value: unknown): string => ['```json', JSON.stringify(value, null, 2), '```'].join('\n')
