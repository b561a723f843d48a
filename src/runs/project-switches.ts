import type { Db } from '../db/pool.ts'

export interface ProjectSwitches {
  /** Projects whose off switch is on; deleted projects are among them. */
  halted: ReadonlySet<string>
  /** The most runs under way in a project, over all processes, for projects that set it. */
  caps: ReadonlyMap<string, number>
  /** Projects that limit their tokens of a month. */
  limited: ReadonlySet<string>
  /** Projects that were deleted and whose rows are not all gone. */
  deleted: ReadonlySet<string>
}

export interface SwitchRow {
  id: string
  kind: 'halted' | 'deleted' | 'capped' | 'limited'
  cap: number
}

/** Four partial indexes hold these projects alone. */
export const SWITCHES = `
  select id, 'halted' as kind, 0 as cap from projects where halted_at is not null
  union all
  select id, 'deleted', 0 from projects where deleted_at is not null
  union all
  select id, 'capped', (settings->>'max_concurrent_runs')::int from projects
  where settings->>'max_concurrent_runs' is not null and deleted_at is null
  union all
  select id, 'limited', 0 from projects where settings->>'monthly_token_limit' is not null and deleted_at is null`

export async function readSwitches(db: Db): Promise<ProjectSwitches> {
  const { rows } = await db.query<SwitchRow>(SWITCHES)
  return switchesOf(rows)
}

export type FollowedSwitches = Awaited<ReturnType<typeof followSwitches>>

export async function followSwitches(db: Db) {
  let switches = await readSwitches(db)
  const listeners: ((projectIds: ReadonlySet<string>) => void)[] = []
  const heed = (next: ProjectSwitches): void => {
    const before = switches.deleted
    switches = next
    if (before.size > 0 || switches.deleted.size > 0) for (const hear of listeners) hear(switches.deleted)
  }
  return {
    now: (): ProjectSwitches => switches,
    refresh: async (): Promise<void> => heed(await readSwitches(db)),
    heed,
    /** The listener is called while projects are deleted, and once more when none is. */
    hearDeleted: (listener: (projectIds: ReadonlySet<string>) => void): void => void listeners.push(listener),
  }
}

export function switchesOf(rows: readonly SwitchRow[]): ProjectSwitches {
  const idsOf = (kind: SwitchRow['kind']): string[] => rows.flatMap((row) => (row.kind === kind ? [row.id] : []))
  return {
    halted: new Set(idsOf('halted')),
    deleted: new Set(idsOf('deleted')),
    limited: new Set(idsOf('limited')),
    caps: new Map(rows.flatMap(({ id, kind, cap }) => (kind === 'capped' ? [[id, cap]] : []))),
  }
}
