// The findings of a bench of several promises, as lines of one table.
import { percentile } from './rounds.ts'

export interface Verdict {
  what: string
  /** Our measurement and the peer's, with their unit. */
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

/** Our latencies and the peer's, in milliseconds, in several rounds. The median round counts. */
export function atMostLatency(
  what: string,
  rounds: readonly { ours: readonly number[]; bare: readonly number[] }[],
  share: number,
  required: number,
): Verdict {
  const facts = rounds.map((round) => ({ ours: percentile(round.ours, share), bare: percentile(round.bare, share) }))
  const sorted = facts.toSorted((a, b) => a.ours / a.bare - b.ours / b.bare)
  const { ours, bare } = sorted[Math.floor(sorted.length / 2)] ?? { ours: Number.NaN, bare: Number.NaN }
  return { what, ours: `${ours.toFixed(2)} ms`, peer: `${bare.toFixed(2)} ms`, ...atMost(ours / bare, required) }
}

export function printVerdicts(
  verdicts: readonly Verdict[],
  { ours: us, peer: them } = { ours: 'muster', peer: 'peer' },
): void {
  const rows = verdicts.map(({ what, ours, peer, value, required, isKept }) => [
    ...[what, ours, peer, value, required, isKept ? 'kept' : 'NOT kept'],
  ])
  const table = [['', us, them, 'ratio', 'required', ''], ...rows]
  const widths = table.reduce<number[]>(
    (most, cells) => cells.map((cell, i) => Math.max(cell.length, most[i] ?? 0)),
    [],
  )
  for (const cells of table) {
    const padded = cells.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0)))
    console.log(padded.join('  '))
  }
}
