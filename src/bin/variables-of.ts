import type { Setting } from './config.ts'

/** The flags of a command by the names of the variables that they stand for. */
export function variablesOf(
  flags: Readonly<Record<string, string | boolean | undefined>>,
  settings: readonly Setting[],
): Record<string, string> {
  const given: Record<string, string> = {}
  for (const { flag, variable } of settings) {
    const name = flag.split(' ')[0] ?? ''
    const value = flags[name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())]
    if (typeof value === 'string') given[variable] = value
  }
  return given
}
