const MOST_TOLD = 20

/** The mistakes of an app module: a start names all of them, so that its author mends the module in one go. */
export class Mistakes extends Error {
  readonly problems: readonly string[]

  constructor(problems: readonly string[], cause?: unknown) {
    super(problems.join(' '), cause === undefined ? {} : { cause })
    this.problems = problems
  }
}

/** `my-app.ts: agent "Writer": …` for one mistake, else a list with a line for each. */
export function sayMistakes(path: string, problems: readonly string[]): string {
  if (problems.length === 1) return `${path}: ${problems[0]}`
  const lines = problems.slice(0, MOST_TOLD)
  if (problems.length > MOST_TOLD) lines.push(`and ${problems.length - MOST_TOLD} more.`)
  return [`${path}: there are ${problems.length} mistakes:`, ...lines].join('\n  ')
}
