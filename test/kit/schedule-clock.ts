// Sets the clock that schedules go by, with or without a process that watched the schedules meanwhile.
import type { TestDatabase } from './database.ts'

export interface ScheduleClock {
  /** Sets the clock to the instant; a process was running all the time. */
  passTo(instant: string): Promise<void>
  /** Sets the clock to the instant; no process was running since the last tick. */
  wakeAt(instant: string): Promise<void>
}

export function createScheduleClock({ pool, clock }: Pick<TestDatabase, 'pool' | 'clock'>): ScheduleClock {
  const wakeAt = async (instant: string): Promise<void> => {
    const { rows } = await pool.query<{ ms: number }>(
      'select (extract(epoch from $1::timestamptz - muster.now()) * 1000)::float8 as ms',
      [instant],
    )
    await clock.advance(Math.round(rows[0]?.ms ?? 0))
  }
  return {
    wakeAt,
    passTo: async (instant) => {
      await wakeAt(instant)
      await pool.query(
        `insert into schedule_watch (seen_at, back_at) values (muster.now(), muster.now())
         on conflict (only_row) do update set seen_at = excluded.seen_at`,
      )
    },
  }
}
