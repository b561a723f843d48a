import type { Db } from '../db/pool.ts'

/** The ids of the runs' agents, in the same order. Parts of a supervisor system have none. */
export async function agentsOfRuns(db: Db, runIds: readonly string[]): Promise<string[]> {
  const { rows } = await db.query<{ id: string; agent_id: string | null }>(
    'select id, agent_id from agent_runs where id = any($1)',
    [runIds],
  )
  const agentOf = new Map(rows.map((row) => [row.id, row.agent_id]))
  return runIds.flatMap((id) => agentOf.get(id) ?? [])
}
