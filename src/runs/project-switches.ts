import type { Db } from '../db/pool.ts'

/** What a process must know of projects before it works for them. */
export interface ProjectSwitches {
  /** Projects whose off switch is on. */
  halted: ReadonlySet<string>
  /** How many runs may be under way in a project, over all processes, where it says so. */
  caps: ReadonlyMap<string, number>
}

export interface SwitchRow {
  id: string
  /** Null: it is halted. */
  cap: number | null
}

/** Two partial indexes hold these projects alone. */
export const SWITCHES = `
  select id, null::int as cap from projects where halted_at is not null
  union all
  select id, (settings->>'max_concurrent_runs')::int from projects where settings->>'max_concurrent_runs' is not null`

export async function readSwitches(db: Db): Promise<ProjectSwitches> {
  const { rows } = await db.query<SwitchRow>(SWITCHES)
  return switchesOf(rows)
}

export function switchesOf(rows: readonly SwitchRow[]): ProjectSwitches {
  return {
    halted: new Set(rows.filter((row) => row.cap === null).map((row) => row.id)),
    caps: new Map(rows.flatMap(({ id, cap }) => (cap === null ? [] : [[id, cap]]))),
  }
}
