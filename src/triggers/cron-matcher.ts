// Finds the minutes of wall time that a cron names. The arithmetic over days is our own, because croner 11 takes 2
// March for the 31st of a February and skips 1 March.
import { cronFields } from './cron-fields.ts'

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS
/** Somewhat more than eight years, in which every date that exists occurs. */
const MOST_DAYS = 3_000

/** The first named minute after a wall time, both as if the wall time were UTC; null if there is none. */
export type CronMatcher = (afterMs: number) => number | null

/** The cron must have been checked. */
export function createCronMatcher(cron: string): CronMatcher {
  const [minute = '', hour = '', day = '', month = '', weekday = ''] = cronFields(cron)
  const minutes = valuesOf(minute, 0, 59)
  const hours = valuesOf(hour, 0, 23)
  const days = new Set(valuesOf(day, 1, 31))
  const months = new Set(valuesOf(month, 1, 12))
  const weekdays = new Set(valuesOf(weekday, 0, 7).map((value) => value % 7))
  // The named days count, not the notation: `*/1`, `1-31` and `0-6` equal `*`; `*/2` is restricted.
  const isEither = days.size < 31 && weekdays.size < 7
  const isNamed = (at: Date): boolean => {
    if (!months.has(at.getUTCMonth() + 1)) return false
    const byDay = days.has(at.getUTCDate())
    const byWeekday = weekdays.has(at.getUTCDay())
    return isEither ? byDay || byWeekday : byDay && byWeekday
  }

  return (afterMs) => {
    const from = (Math.floor(afterMs / MINUTE_MS) + 1) * MINUTE_MS
    const today = Math.floor(from / DAY_MS)
    for (let passed = 0; passed <= MOST_DAYS; passed++) {
      const midnight = (today + passed) * DAY_MS
      if (!isNamed(new Date(midnight))) continue
      const within = firstWithin(hours, minutes, passed === 0 ? (from - midnight) / MINUTE_MS : 0)
      if (within !== null) return midnight + within * MINUTE_MS
    }
    return null
  }
}

/** The first named minute of a day that is not before `earliest`. Both are counted from midnight. */
function firstWithin(hours: readonly number[], minutes: readonly number[], earliest: number): number | null {
  for (const hour of hours) {
    if (hour * 60 + 59 < earliest) continue
    const minute = minutes.find((each) => hour * 60 + each >= earliest)
    if (minute !== undefined) return hour * 60 + minute
  }
  return null
}

function valuesOf(field: string, least: number, most: number): number[] {
  const values = new Set<number>()
  for (const part of field.split(',')) {
    const [range = '', step = '1'] = part.split('/')
    const [first, last] = range === '*' ? [least, most] : range.split('-').map(Number)
    for (let value = first ?? least; value <= (last ?? first ?? most); value += Number(step)) values.add(value)
  }
  return [...values].sort((a, b) => a - b)
}
