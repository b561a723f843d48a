// The verdict of an eval, in words and figures.
import type { CaseResult, Comparison, Eval } from '../../../../src/kernel/eval.ts'

type Interval = Comparison['intervals']['pass_rate']

/** better, worse: the interval leaves out zero, so the difference is more than chance. */
export type Meaning = 'better' | 'worse' | 'chance' | 'unknown'

export const percent = (share: number | null): string => (share === null ? '–' : `${Math.round(share * 100)} %`)

/** +20 points, −5 points, no difference */
export function points(delta: number): string {
  const rounded = Math.round(delta * 100)
  if (rounded === 0) return 'no difference'
  return `${signed(rounded)} ${Math.abs(rounded) === 1 ? 'point' : 'points'}`
}

export const signed = (value: number): string => (value < 0 ? `−${Math.abs(value)}` : `+${value}`)

/** `isMoreBetter` is true of a pass rate, and false of tokens and time. */
export function meaningOf(delta: number | null, interval: Interval, isMoreBetter: boolean): Meaning {
  if (delta === null || interval === null) return 'unknown'
  const [low, high] = interval
  if (low <= 0 && high >= 0) return 'chance'
  return delta > 0 === isMoreBetter ? 'better' : 'worse'
}

export interface Verdict {
  tone: 'running' | 'completed' | 'failed' | 'blocked' | 'pending'
  text: string
}

export function verdictOf(one: Eval): Verdict {
  const { done, total } = one.progress
  if (one.status === 'failed') return { tone: 'failed', text: one.error_message ?? 'The eval failed.' }
  if (one.status === 'cancelled') {
    return { tone: 'pending', text: `The eval was cancelled after ${done} of ${total} results. ${summary(one)}`.trim() }
  }
  if (one.status === 'running') {
    return { tone: 'running', text: `${done} of ${total} results are there. ${summary(one)}`.trim() }
  }
  const worst = one.compared.some((name) => meaningOfRate(one, name) === 'worse')
  return { tone: worst ? 'blocked' : 'completed', text: summary(one) }
}

function meaningOfRate({ variants }: Eval, name: string): Meaning {
  const versus = variants[name]?.versus_first
  return versus ? meaningOf(versus.deltas.pass_rate, versus.intervals.pass_rate, true) : 'unknown'
}

/** "blue passes 60 %. green passes 80 %, +20 points: that may be chance." */
function summary(one: Eval): string {
  return one.compared
    .flatMap((name, place) => {
      const variant = one.variants[name]
      if (!variant || variant.pass_rate === null) return []
      const passes = `${name} passes ${percent(variant.pass_rate)}`
      const delta = variant.versus_first?.deltas.pass_rate ?? null
      if (place === 0 || delta === null) return [`${passes}.`]
      return [`${passes}, ${points(delta)}${ENDS[meaningOfRate(one, name)]}`]
    })
    .join(' ')
}

const ENDS: Record<Meaning, string> = {
  better: ', and that is more than chance.',
  worse: ', and that is more than chance.',
  chance: ', which may be chance.',
  unknown: '.',
}

export interface CaseRow {
  index: number
  task: string
  isChanged: boolean
  /** One for each variant, in the order of the eval. */
  results: (CaseResult | null)[]
}

export const SHOWN = ['all', 'changed', 'failed', 'under way'] as const
export type Shown = (typeof SHOWN)[number]

/**
 * The cases by their number; of an eval whose rows move no more, those that changed between variants first, then those
 * that failed.
 */
export function casesOf(one: Eval, isRanked: boolean): CaseRow[] {
  const changed = new Set(one.changed.map(({ index }) => index))
  const byIndex = one.compared.map((name) => new Map(one.variants[name]?.cases.map((each) => [each.index, each])))
  const indexes = [...new Set(byIndex.flatMap((cases) => [...cases.keys()]))]
  const rows = indexes.map((index) => {
    const results = byIndex.map((cases) => cases.get(index) ?? null)
    return { index, task: results.find((each) => each)?.task ?? '', isChanged: changed.has(index), results }
  })
  return rows.sort((a, b) => (isRanked ? rank(a) - rank(b) : 0) || a.index - b.index)
}

const rank = (row: CaseRow): number => (row.isChanged ? 0 : hasFailed(row) ? 1 : 2)
const hasFailed = ({ results }: CaseRow): boolean => results.some((each) => each?.passed === false)

export function filterCases(rows: readonly CaseRow[], shown: Shown): CaseRow[] {
  switch (shown) {
    case 'all':
      return [...rows]
    case 'changed':
      return rows.filter(({ isChanged }) => isChanged)
    case 'failed':
      return rows.filter(hasFailed)
    case 'under way':
      return rows.filter(({ results }) => results.some((each) => each === null || each.passed === null))
  }
}

/** The word for an outcome: one of the words that statuses have. */
export function wordOf(result: CaseResult | null): 'passed' | 'failed' | 'running' | 'pending' {
  if (result?.passed === true) return 'passed'
  if (result?.passed === false) return 'failed'
  return result?.status === 'RUNNING' ? 'running' : 'pending'
}
