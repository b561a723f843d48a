// The choice of a pattern for a workload: the one whose cues in the description have the most weight.
import type { Pattern, Patterns } from '../machine/pattern.ts'
import type { Suits, WorkloadFacts } from '../machine/workload.ts'

/** A pattern that may be recommended. */
export type Recommendable = Pattern & { suits: Suits }

export interface ChosenPattern {
  candidate: Recommendable
  /** The reasons, the weightiest first; empty if no cue was found. */
  because: string[]
}

/** The candidates in the order in which people read of them. */
export const candidatesIn = ({ all }: Patterns): Recommendable[] =>
  all.flatMap((pattern) => (pattern.suits ? [{ ...pattern, suits: pattern.suits }] : []))

export function choosePattern(facts: WorkloadFacts, patterns: Patterns): ChosenPattern {
  const heard = candidatesIn(patterns)
    .map((candidate) => ({ candidate, cues: candidate.suits.cues.filter((cue) => speaks(cue, facts)) }))
    .map(({ candidate, cues }) => ({ candidate, cues, weight: cues.reduce((all, { weight }) => all + weight, 0) }))
    .toSorted((a, b) => b.weight - a.weight || a.candidate.suits.rank - b.candidate.suits.rank)
  // No candidate has weight if no cue is found. The pattern of the last rank is always right, if not always fast.
  const best = heard[0]?.weight === 0 ? heard.at(-1) : heard[0]
  if (!best) throw new Error('There is no pattern that may be recommended.')
  const { candidate, cues } = best
  return { candidate, because: cues.toSorted((a, b) => b.weight - a.weight).map((cue) => cue.because) }
}

const speaks = ({ speaks: by }: Suits['cues'][number], facts: WorkloadFacts): boolean =>
  by instanceof RegExp ? by.test(facts.text) : by(facts)
