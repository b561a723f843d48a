import type { Db } from '../db/pool.ts'

/** A run that has not ended, as it stood when its row was locked. */
export interface OpenRun {
  id: string
  ancestors: string[]
  owner: string | null
  cancel_requested_at: Date | null
  last_seq: number
  depth: number
}

/**
 * Locks these runs and all runs below them that have not ended, in the order of their ids. Returns the deepest first. A
 * locked run starts no sub-run; but a sub-run may have started while the statement waited for the lock, so the
 * statement is repeated until it finds no further run.
 */
export async function lockTree(tx: Db, projectId: string | null, runIds: readonly string[]): Promise<OpenRun[]> {
  const open = new Map<string, OpenRun>()
  for (;;) {
    const { rows } = await tx.query<OpenRun>(LOCK, [runIds, projectId, [...open.keys()]])
    if (rows.length === 0) return [...open.values()].toSorted((a, b) => b.depth - a.depth)
    for (const row of rows) open.set(row.id, row)
  }
}

const LOCK = `
  with recursive tree as (
    select id from agent_runs where id = any($1) and ($2::uuid is null or project_id = $2)
    union select r.id from agent_runs r join tree on r.parent_run_id = tree.id
  )
  select id, ancestors, owner, cancel_requested_at, last_seq, depth from agent_runs
  where id in (select id from tree) and id <> all($3) and completed_at is null
  order by id for update`
