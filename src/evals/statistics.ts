// Compares two variants over the same cases. The comparison is arithmetic on the outcomes without random draws: the
// same outcomes give the same figures.
//
// Cases are pairs, so differences are taken case by case: a case that is hard or long for both variants adds no
// difference.
// - Pass rates: the interval of Bonett and Price (2012) for the difference of paired proportions. It is Wald's interval
//   after one case was added to each of the two kinds of discordant pairs (passes in the one only, in the other only). It
//   keeps its 95 % for small samples, and is not empty if both variants agree in all cases, as Wald's own would be.
// - Latency and tokens: the mean of the differences, plus and minus Student's t times its standard error.
// A bootstrap would do the same with a seed and ten thousand times the work in every request.
import type { Comparison } from '../kernel/eval.ts'
import { NORMAL_975, studentT975 } from './student-t.ts'

/** The outcome of a case in a variant. Figures are null if the run was removed before they were read. */
export interface MeasuredOutcome {
  passed: boolean
  latency: number | null
  tokens: number | null
}

export interface SampleSummary {
  pass_rate: number | null
  latency: number | null
  tokens: number | null
}

/** The means over all known outcomes and all known figures. */
export function summarize(outcomes: readonly (MeasuredOutcome | null)[]): SampleSummary {
  const known = outcomes.filter((outcome) => outcome !== null)
  return {
    pass_rate: mean(known.map(({ passed }) => Number(passed))),
    latency: rounded(mean(known.flatMap(({ latency }) => latency ?? []))),
    tokens: mean(known.flatMap(({ tokens }) => tokens ?? [])),
  }
}

/**
 * The second variant minus the first, over the same cases in the same order. Cases that lack an outcome are left out,
 * and cases that lack a figure from that figure.
 */
export function compare(
  first: readonly (MeasuredOutcome | null)[],
  second: readonly (MeasuredOutcome | null)[],
): Comparison {
  const pairs = first.flatMap((before, place) => {
    const after = second[place]
    return before && after ? [{ before, after }] : []
  })
  const latencies = pairsOf(pairs, 'latency')
  const tokens = differencesOf(pairsOf(pairs, 'tokens'))
  const gained = pairs.filter(({ before, after }) => after.passed && !before.passed).length
  const lost = pairs.filter(({ before, after }) => before.passed && !after.passed).length
  return {
    deltas: {
      pass_rate: pairs.length === 0 ? null : (gained - lost) / pairs.length,
      latency: differenceOfMeans(latencies),
      tokens: mean(tokens),
    },
    intervals: {
      pass_rate: pairs.length === 0 ? null : pairedProportions(pairs.length, gained, lost),
      latency: outwards(pairedMeans(differencesOf(latencies))),
      tokens: pairedMeans(tokens),
    },
  }
}

type Pair = [before: number, after: number]

const pairsOf = (
  pairs: readonly { before: MeasuredOutcome; after: MeasuredOutcome }[],
  figure: 'latency' | 'tokens',
): Pair[] =>
  pairs.flatMap(({ before, after }): Pair[] => {
    const [one, other] = [before[figure], after[figure]]
    return one === null || other === null ? [] : [[one, other]]
  })

const differencesOf = (pairs: readonly Pair[]): number[] => pairs.map(([before, after]) => after - before)

/** The difference of the rounded means, so that one shown mean plus the delta is the other shown mean. */
function differenceOfMeans(pairs: readonly Pair[]): number | null {
  const before = rounded(mean(pairs.map(([one]) => one)))
  const after = rounded(mean(pairs.map(([, other]) => other)))
  return before === null || after === null ? null : after - before
}

type Interval = [low: number, high: number]

export function pairedProportions(pairs: number, gained: number, lost: number): Interval {
  const count = pairs + 2
  const up = (gained + 1) / count
  const down = (lost + 1) / count
  const middle = (gained - lost) / count
  const reach = NORMAL_975 * Math.sqrt((up + down - middle * middle) / count)
  return [Math.max(-1, middle - reach), Math.min(1, middle + reach)]
}

export function pairedMeans(differences: readonly number[]): Interval | null {
  const count = differences.length
  const middle = mean(differences)
  if (count < 2 || middle === null) return null
  const squares = differences.reduce((sum, difference) => sum + (difference - middle) ** 2, 0)
  const reach = studentT975(count - 1) * Math.sqrt(squares / (count - 1) / count)
  return [middle - reach, middle + reach]
}

/** Durations are whole milliseconds. */
const outwards = (interval: Interval | null): Interval | null =>
  interval && [Math.floor(interval[0]), Math.ceil(interval[1])]

const mean = (values: readonly number[]): number | null =>
  values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length

const rounded = (value: number | null): number | null => (value === null ? null : Math.round(value))
