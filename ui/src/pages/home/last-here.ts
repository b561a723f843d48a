// When the person was last here. A visit goes on while somebody comes back within half an hour.

export interface Visits {
  /** The end of the visit before this one. */
  since: number
  /** The last sign of this visit. */
  last: number
  /** True: there was no visit before this one, so `since` is a day before its beginning. */
  isFirst: boolean
}

const GAP_MS = 30 * 60_000
/** The first visit looks so far back. */
const FIRST_MS = 24 * 60 * 60_000

/** The visits after a sign of life. */
export function noteVisit(before: Visits | null, now: number): Visits {
  if (before === null || before.last > now) return { since: now - FIRST_MS, last: now, isFirst: true }
  const isNext = now - before.last > GAP_MS
  return { since: isNext ? before.last : before.since, last: now, isFirst: before.isFirst && !isNext }
}

/** The stored text, or null if it is none of ours. */
export function readVisits(text: string | null): Visits | null {
  try {
    const value: unknown = JSON.parse(text ?? 'null')
    if (typeof value !== 'object' || value === null || !('since' in value) || !('last' in value)) return null
    const { since, last } = value
    if (typeof since !== 'number' || typeof last !== 'number') return null
    return { since, last, isFirst: 'isFirst' in value && value.isFirst === true }
  } catch {
    return null
  }
}
