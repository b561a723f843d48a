/** The lines of a text that are not blank. */
export const linesOf = (text: string): string[] => text.split('\n').filter((line) => line.trim() !== '')

/** Names and values, one pair per line. Only the first separator of a line counts. */
export function pairsFrom(
  text: string,
  separator: ':' | '=',
): { pairs: Record<string, string>; problem: string | null } {
  const pairs: Record<string, string> = {}
  for (const line of linesOf(text)) {
    const at = line.indexOf(separator)
    const name = line.slice(0, Math.max(at, 0)).trim()
    if (name === '')
      return { pairs: {}, problem: `This line is not a name, “${separator}” and a value: ${line.trim()}` }
    pairs[name] = line.slice(at + 1).trim()
  }
  return { pairs, problem: null }
}
