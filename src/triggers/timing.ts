// The times of a schedule before an agent runs by it: whether it can be used, and when it is due next.
import { databaseTime } from '../db/database-time.ts'
import type { Db } from '../db/pool.ts'
import { invalidRequest } from '../kernel/errors.ts'
import { didYouMean } from '../kernel/nearest.ts'
import type { SchedulePreview } from '../kernel/schedule.ts'
import { nextTick } from './cron.ts'
import { cronProblem } from './cron-fields.ts'

interface Timing {
  cron_schedule: string | null
  timezone: string
}

/** A sentence about a schedule or a time zone that cannot be used, or null. `isNeverDue`: the schedule names no time. */
export async function timingProblem(
  db: Db,
  { cron_schedule, timezone }: Timing,
): Promise<{ problem: string; isNeverDue?: true } | null> {
  const problem = cron_schedule === null ? null : cronProblem(cron_schedule)
  if (problem) return { problem }
  if (!isTimezone(timezone)) {
    const guess = didYouMean(timezone, Intl.supportedValuesOf('timeZone'))
    return { problem: `timezone: there is no time zone called ${timezone}.${guess}` }
  }
  if (cron_schedule === null || nextTick(cron_schedule, timezone, await databaseTime(db)) !== null) return null
  return { problem: `cron_schedule: nothing is due in the next 8 years by "${cron_schedule}".`, isNeverDue: true }
}

/** The next times of a schedule, found by the code that starts its runs. */
export async function previewSchedule(
  db: Db,
  timing: { cron_schedule: string; timezone: string; count: number },
): Promise<SchedulePreview> {
  const refused = await timingProblem(db, timing)
  if (refused) throw invalidRequest(refused.problem, refused.isNeverDue ? { never_due: true } : undefined)
  const { cron_schedule, timezone, count } = timing
  const items: string[] = []
  let tick = nextTick(cron_schedule, timezone, await databaseTime(db))
  for (; tick !== null && items.length < count; tick = nextTick(cron_schedule, timezone, tick)) {
    items.push(tick.toISOString())
  }
  return { cron_schedule, timezone, items }
}

function isTimezone(name: string): boolean {
  // Intl accepts offsets such as +02:00 too, but an offset is no time zone.
  if (/^[+-]/.test(name)) return false
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}
