import type { CatchUp } from '../kernel/schedule.ts'
import { newestTicks, nextTick } from './cron.ts'

export interface DueSchedule {
  cron: string
  zone: string
  catchUp: CatchUp
  /** The first tick that was not handled yet. */
  nextRunAt: Date
  now: Date
  /** The instant at which an outage ended: ticks up to this instant were missed, later ticks are on time. */
  backAt: Date
  /** The instant at which the project was last released from a halt: ticks up to this instant are not run. */
  unhaltedAt: Date | null
}

export interface DueRuns {
  /** The ticks to run, oldest first; each is one run. */
  ticks: Date[]
  nextRunAt: Date | null
}

const MOST_AT_ONCE = 100
const MISSED_RUNS: Readonly<Record<CatchUp, number>> = { once: 1, skip: 0, all: MOST_AT_ONCE }

/** The runs that a schedule must start now, and the instant at which the schedule is due again. */
export function dueRuns({ cron, zone, catchUp, nextRunAt, now, backAt, unhaltedAt }: DueSchedule): DueRuns {
  const isHaltOver = unhaltedAt !== null && unhaltedAt >= nextRunAt
  const first = isHaltOver ? nextTick(cron, zone, unhaltedAt) : nextRunAt
  if (first === null || first > now) return { ticks: [], nextRunAt: first }

  const missedUntil = backAt < now ? backAt : now
  const missed = newestTicks(cron, zone, { first, until: missedUntil, count: MISSED_RUNS[catchUp] })
  const onTime = first > missedUntil ? first : nextTick(cron, zone, missedUntil)
  const late = onTime === null ? [] : newestTicks(cron, zone, { first: onTime, until: now, count: MOST_AT_ONCE })
  return { ticks: [...missed, ...late], nextRunAt: nextTick(cron, zone, now) }
}
