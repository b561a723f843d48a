import { cutText } from '../kernel/cut-text.ts'
import type { CaseStatus, Correctness, Expectation } from '../kernel/eval.ts'

/** The facts about the end of a run that cases may expect. */
export interface RunEnd {
  status: CaseStatus
  output: string | null
  /** The specialists that worked, in their order. */
  route: readonly string[]
  error: { code: string; message: string } | null
}

/** The longest text that a reason repeats. */
const LONGEST_QUOTE = 200
/** The most specialists of a route that a reason names. */
const MOST_NAMED = 20

/** The reason why the run does not pass, with every failed expectation. Null if the run passes. */
export function judgeCase(expect: Expectation, end: RunEnd): string | null {
  const { contains, route, max_steps: mostSteps } = expect
  const reasons = [
    statusReason(expect, end),
    contains !== undefined && !end.output?.includes(contains)
      ? `The output does not contain "${quoted(contains)}".`
      : null,
    route !== undefined && !isSame(route, end.route)
      ? `The route is ${shown(end.route)}; expected was ${shown(route)}.`
      : null,
    mostSteps !== undefined && end.route.length > mostSteps
      ? `Specialists worked ${end.route.length} times; at most ${mostSteps} were expected.`
      : null,
  ].filter((reason) => reason !== null)
  return reasons.length === 0 ? null : reasons.join(' ')
}

function statusReason({ status: expected }: Expectation, { status, error }: RunEnd): string | null {
  if (status === expected || (expected === undefined && status !== 'FAILED')) return null
  const because = error ? ` (${error.code}: ${quoted(error.message)})` : ''
  if (expected === undefined) return `The run is FAILED${because}.`
  return `The status is ${status}${because}; expected was ${expected}.`
}

export function correctnessOf(
  judged: readonly { expect: Expectation; end: Pick<RunEnd, 'status' | 'route'> }[],
): Correctness {
  const share = (holds: (each: (typeof judged)[number]) => boolean | null): number | null => {
    const known = judged.map(holds).filter((held) => held !== null)
    return known.length === 0 ? null : known.filter(Boolean).length / known.length
  }
  const asks = (status: CaseStatus): boolean => status === 'ESCALATE'
  return {
    status: share(({ expect: { status }, end }) => (status === undefined ? null : status === end.status)),
    routing: share(({ expect: { route }, end }) => (route === undefined ? null : isSame(route, end.route))),
    escalation: share(({ expect: { status }, end }) =>
      status === undefined ? null : asks(status) === asks(end.status),
    ),
  }
}

const isSame = (expected: readonly string[], route: readonly string[]): boolean =>
  expected.length === route.length && expected.every((name, place) => name === route[place])

const quoted = (text: string): string => cutText(text, LONGEST_QUOTE, '…')

function shown(route: readonly string[]): string {
  if (route.length === 0) return 'empty'
  const names = route.slice(0, MOST_NAMED).map((name) => quoted(name))
  return [...names, ...(route.length > MOST_NAMED ? [`${route.length - MOST_NAMED} more`] : [])].join(' → ')
}
