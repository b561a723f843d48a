import type { Db } from '../db/pool.ts'

/** What a process must know of projects before it works for them. */
export interface ProjectSwitches {
  /** Projects whose off switch is on. */
  halted: ReadonlySet<string>
  /** How many runs may be under way in a project, over all processes, where it says so. */
  caps: ReadonlyMap<string, number>
}

/** Two partial indexes hold these projects alone. */
export async function readSwitches(db: Db): Promise<ProjectSwitches> {
  const { rows } = await db.query<{ id: string; cap: number | null }>(
    `select id, null as cap from projects where halted_at is not null
     union all
     select id, (settings->>'max_concurrent_runs')::int from projects where settings->>'max_concurrent_runs' is not null`,
  )
  return {
    halted: new Set(rows.filter((row) => row.cap === null).map((row) => row.id)),
    caps: new Map(rows.flatMap(({ id, cap }) => (cap === null ? [] : [[id, cap]]))),
  }
}
