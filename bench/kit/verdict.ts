// What a bench of several promises found, as lines of one table.
export interface Verdict {
  what: string
  /** Ours and the peer's, with their unit. */
  ours: string
  peer: string
  value: string
  required: string
  isKept: boolean
}

export function atLeast(ratio: number, required: number): Pick<Verdict, 'value' | 'required' | 'isKept'> {
  return { value: `${ratio.toFixed(2)}x`, required: `>= ${required}x`, isKept: ratio >= required }
}

export function atMost(ratio: number, required: number): Pick<Verdict, 'value' | 'required' | 'isKept'> {
  return { value: `${ratio.toFixed(2)}x`, required: `<= ${required}x`, isKept: ratio <= required }
}

export function printVerdicts(verdicts: readonly Verdict[]): void {
  const rows = verdicts.map(({ what, ours, peer, value, required, isKept }) => [
    ...[what, ours, peer, value, required, isKept ? 'kept' : 'NOT kept'],
  ])
  const table = [['', 'muster', 'peer', 'ratio', 'required', ''], ...rows]
  const widths = table.reduce<number[]>(
    (most, cells) => cells.map((cell, i) => Math.max(cell.length, most[i] ?? 0)),
    [],
  )
  for (const cells of table) {
    const padded = cells.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0)))
    console.log(padded.join('  '))
  }
}
