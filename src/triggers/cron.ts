// Finds the instants at which a schedule is due. cron-matcher.ts finds wall times; this file decides about changes of
// clocks. A fixed hour that is skipped fires at the first instant after the gap, a doubled hour the first time only. An
// hour field that starts with `*` goes by elapsed time: it fires in both passes, and a gap adds nothing.
import { putNewest } from '../kernel/put-newest.ts'
import { cronFields, cronProblem } from './cron-fields.ts'
import { type CronMatcher, createCronMatcher } from './cron-matcher.ts'
import { findTurn, offsetAt } from './zone-offset.ts'

const YEARS_AHEAD = 8
const MINUTE_MS = 60_000
/** A window longer than the longest change of clocks (a whole day) and shorter than the time between two changes. */
const WINDOW_MS = 36 * 60 * MINUTE_MS
const MOST_PARSED = 5_000

interface Parsed {
  nextMatch: CronMatcher
  isByElapsedTime: boolean
}

const parsed = new Map<string, Parsed>()

/** The first tick after that instant; null if none is due in the next 8 years. Throws if the text is no cron. */
export function nextTick(cron: string, zone: string, after: Date): Date | null {
  const { nextMatch, isByElapsedTime } = parse(cron)
  const last = yearsAfter(after)
  let from = after.getTime()
  let offset = offsetAt(zone, from)
  /** The last wall time that was handled. */
  let local = from + offset
  if (!isByElapsedTime) local = Math.max(local, endOfFirstPass(zone, from, offset) - 1)
  for (;;) {
    const match = nextMatch(local)
    if (match === null || match - offset > last + WINDOW_MS) return null
    const tick = Math.max(from, match - offset)
    const end = from + WINDOW_MS
    if (offsetAt(zone, end) === offset) {
      if (tick <= end) return tick <= last ? new Date(tick) : null
      // No earlier time matches: go on shortly before the match, in case the clocks were changed there.
      from = Math.max(end, tick - WINDOW_MS)
      offset = offsetAt(zone, from)
      local = match - 1
      continue
    }
    const turn = findTurn(zone, from, end, offset)
    if (tick < turn) return tick <= last ? new Date(tick) : null
    const turned = offsetAt(zone, turn)
    // All wall times before the turn have passed; wall times in a gap fire at the turn.
    local = isByElapsedTime ? turn + turned - 1 : Math.max(local, turn + offset - 1)
    from = turn
    offset = turned
  }
}

/** The newest ticks up to `until`, at most `count`, oldest first. `first` is a tick; earlier ticks do not count. */
export function newestTicks(cron: string, zone: string, span: { first: Date; until: Date; count: number }): Date[] {
  const ticks: Date[] = []
  let until = span.until
  while (ticks.length < span.count && until >= span.first) {
    const tick = lastTick(cron, zone, span.first, until)
    ticks.unshift(tick)
    until = new Date(tick.getTime() - 1)
  }
  return ticks
}

/** Goes back in doubling steps, then halves the rest, so that a year of minutes costs little more than a day. */
function lastTick(cron: string, zone: string, first: Date, until: Date): Date {
  const dueAfter = (ms: number): Date | null => {
    const tick = nextTick(cron, zone, new Date(ms))
    return tick !== null && tick <= until ? tick : null
  }
  let newest = first
  let nothingAfter = until.getTime()
  for (let step = MINUTE_MS; until.getTime() - step > first.getTime(); step *= 2) {
    const tick = dueAfter(until.getTime() - step)
    if (tick) {
      newest = tick
      break
    }
    nothingAfter = until.getTime() - step
  }
  for (;;) {
    const later = dueAfter(newest.getTime())
    if (!later) return newest
    const middle = Math.floor((later.getTime() + nothingAfter) / 2)
    const latest = dueAfter(middle)
    if (!latest) nothingAfter = middle
    newest = latest ?? later
  }
}

/** The wall time at which doubled wall times end, if the instant is in the second pass. */
function endOfFirstPass(zone: string, instant: number, offset: number): number {
  const earlier = offsetAt(zone, instant - WINDOW_MS)
  if (earlier <= offset) return Number.NEGATIVE_INFINITY
  return findTurn(zone, instant - WINDOW_MS, instant, earlier) + earlier
}

function yearsAfter(instant: Date): number {
  const later = new Date(instant)
  return later.setUTCFullYear(later.getUTCFullYear() + YEARS_AHEAD)
}

function parse(cron: string): Parsed {
  let known = parsed.get(cron)
  if (!known) {
    const problem = cronProblem(cron)
    if (problem !== null) throw new Error(problem)
    const [, hour] = cronFields(cron)
    known = { nextMatch: createCronMatcher(cron), isByElapsedTime: hour?.startsWith('*') === true }
    putNewest(parsed, cron, known, MOST_PARSED)
  }
  return known
}
