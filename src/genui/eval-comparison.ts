// The layout of an eval: each variant's pass rate, duration and cost, and whether the difference is more than chance.
import type { CaseResult, Comparison, Eval, EvalStatus } from '../kernel/eval.ts'
import type { Component, Layout, OfType } from '../kernel/genui.ts'
import { NONE, sayCount, sayCounted, sayDuration, sayShare, saySigned } from './amounts.ts'
import { asCell, asLabel, asText } from './plain-text.ts'

type MeasureName = 'pass_rate' | 'latency' | 'tokens'

export type EvalFacts = Pick<
  Eval,
  'id' | 'name' | 'status' | 'error_message' | 'compared' | 'progress' | 'deltas' | 'intervals'
> & {
  variants: Record<string, VariantFacts>
}
type VariantFacts = Pick<Eval['variants'][string], MeasureName> & {
  cases: Pick<CaseResult, 'task' | 'passed' | 'reason' | 'run_id'>[]
}
type Variant = [name: string, measured: VariantFacts]
type Interval = Comparison['intervals'][MeasureName]

const MOST_CASES = 50

interface Measure {
  name: MeasureName
  label: string
  unit: string
  say: (amount: number) => string
  /** The amount in the unit of the chart. */
  drawn: (amount: number) => number
  isMoreBetter: boolean
}

/** Rounds away the noise of a fraction. */
const percentOf = (share: number): number => Math.round(share * 1_000) / 10

const MEASURES: readonly Measure[] = [
  { name: 'pass_rate', label: 'Pass rate', unit: '%', say: sayShare, drawn: percentOf, isMoreBetter: true },
  { name: 'latency', label: 'Mean latency', unit: 'ms', say: sayDuration, drawn: (ms) => ms, isMoreBetter: false },
  { name: 'tokens', label: 'Mean tokens', unit: 'tokens', say: sayCount, drawn: (count) => count, isMoreBetter: false },
]

export function showEval(facts: EvalFacts): Layout {
  const variants = variantsOf(facts)
  const components: Component[] = [
    { type: 'text', id: 'title', value: asText(facts.name.trim() || 'Comparison of variants'), style: 'title' },
    showState(facts),
    ...showVerdict(facts, variants),
    showVariants(variants),
    ...showDeltas(facts, variants),
    ...showCharts(variants),
    ...showChanged(variants),
    {
      type: 'button',
      id: 'open_eval',
      label: 'Open the eval',
      action: { type: 'open', target: 'eval', id: facts.id },
      emphasis: 'plain',
    },
  ]
  return { components }
}

/** The variants in the order of comparison; the others are measured against the first. */
function variantsOf({ variants, compared }: EvalFacts): Variant[] {
  return compared.flatMap((name): Variant[] => {
    const measured = variants[name]
    return measured ? [[name, measured]] : []
  })
}

function showState({ status, progress, error_message: error }: EvalFacts): Component {
  const done = ` ${sayCount(progress.done)} of ${sayCounted(progress.total, 'run')} are done.`
  const says: Record<EvalStatus, [words: string, tone: OfType<'text'>['tone']]> = {
    running: [`The eval is running.${done} The figures may still change.`, 'neutral'],
    completed: ['The eval is complete.', 'good'],
    failed: [`The eval failed.${done}${error ? ` It says: ${error}` : ''}`, 'bad'],
    cancelled: [`The eval was cancelled.${done}`, 'warning'],
  }
  const [value, tone] = says[status]
  return { type: 'text', id: 'state', value: asText(value), ...(tone ? { tone } : {}) }
}

/** One sentence about the pass rate, the most important measure. */
function showVerdict({ deltas, intervals }: EvalFacts, [first, second]: Variant[]): Component[] {
  const delta = deltas.pass_rate
  if (!first || !second || delta === null) return []
  const [better, worse] = delta >= 0 ? [second[0], first[0]] : [first[0], second[0]]
  const certainty = certaintyOf(intervals.pass_rate)
  const words =
    delta === 0
      ? `${first[0]} and ${second[0]} pass equally often.`
      : `${better} passes more often than ${worse}, by ${sayPoints(Math.abs(delta))}${certainty === null ? '' : `: ${certainty}`}.`
  return [{ type: 'text', id: 'verdict', value: asText(words), style: 'heading' }]
}

/** If the interval contains zero, there may be no difference at all. */
function certaintyOf(within: Interval): string | null {
  if (!within) return null
  const [low, high] = within
  return low <= 0 && high >= 0 ? 'this may be chance' : 'this is unlikely to be chance'
}

function showVariants(variants: readonly Variant[]): Component {
  return {
    type: 'table',
    id: 'variants',
    title: 'Variants',
    columns: [{ label: 'Variant' }, ...MEASURES.map(({ label }) => ({ label, align: 'right' as const }))],
    rows: variants.map(([name, measured]) => ({
      cells: [asCell(name), ...MEASURES.map((measure) => sayOr(measured[measure.name], measure.say))],
    })),
  }
}

function showDeltas({ deltas, intervals }: EvalFacts, [first, second]: Variant[]): Component[] {
  if (!first || !second) return []
  const rows = MEASURES.map((measure) => {
    const delta = deltas[measure.name]
    const within = intervals[measure.name]
    const say = measure.name === 'pass_rate' ? sayPoints : measure.say
    return {
      cells: [
        measure.label,
        delta === null ? NONE : saySigned(delta, say),
        within ? `${saySigned(within[0], say)} to ${saySigned(within[1], say)}` : NONE,
        delta === null ? NONE : verdictOf(measure, delta, certaintyOf(within)),
      ],
    }
  })
  return [
    {
      type: 'table',
      id: 'deltas',
      title: asLabel(`${second[0]} minus ${first[0]}`),
      columns: [
        { label: 'Measure' },
        { label: 'Difference', align: 'right' },
        { label: '95 % interval', align: 'right' },
        { label: 'In words' },
      ],
      rows,
    },
  ]
}

function verdictOf({ isMoreBetter }: Measure, delta: number, certainty: string | null): string {
  if (delta === 0) return 'no difference'
  const side = delta > 0 === isMoreBetter ? 'better' : 'worse'
  return certainty === null ? side : `${side}; ${certainty}`
}

function showCharts(variants: readonly Variant[]): Component[] {
  if (variants.length === 0) return []
  const components = MEASURES.map(
    ({ name, label, unit, drawn }): OfType<'chart'> => ({
      type: 'chart',
      id: `chart_${name}`,
      title: label,
      kind: 'bar',
      unit,
      categories: variants.map(([variant]) => asLabel(variant)),
      series: [{ label, values: variants.map(([, { [name]: found }]) => (found === null ? null : drawn(found))) }],
    }),
  )
  return [{ type: 'group', id: 'charts', title: 'Charts', components }]
}

/** Cases that pass in one of the first two variants only. */
function showChanged([first, second]: Variant[]): Component[] {
  if (!first || !second) return []
  const [before, after] = [first[1].cases, second[1].cases]
  const changed = before.flatMap((one, index) => {
    const other = after[index]
    return other && one.passed !== null && other.passed !== null && one.passed !== other.passed ? [{ one, other }] : []
  })
  if (changed.length === 0) return []
  const rows = changed.slice(0, MOST_CASES).map(({ one, other }) => {
    const failed = one.passed ? other : one
    return {
      cells: [asCell(one.task), sayPassed(one.passed), sayPassed(other.passed), asCell(failed.reason ?? NONE)],
      ...(failed.run_id ? { open: { target: 'run', id: failed.run_id } as const } : {}),
    }
  })
  const note =
    changed.length > rows.length
      ? { note: `${sayCounted(changed.length - rows.length, 'further case')} not shown.` }
      : {}
  return [
    {
      type: 'table',
      id: 'changed',
      title: 'Cases that pass in one variant only',
      columns: [{ label: 'Case' }, { label: asLabel(first[0]) }, { label: asLabel(second[0]) }, { label: 'Why not' }],
      rows,
      ...note,
    },
  ]
}

const sayPassed = (passed: boolean | null): string => (passed ? 'passed' : 'failed')
const sayPoints = (share: number): string => sayShare(share).replace('%', 'points')
const sayOr = (given: number | null, say: (amount: number) => string): string => (given === null ? NONE : say(given))
