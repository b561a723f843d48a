import type { Db } from '../db/pool.ts'
import { invalidRequest, type MusterError } from '../kernel/errors.ts'

export async function requireSenior(db: Db, projectId: string, seniorId: string): Promise<void> {
  const { rowCount } = await db.query('select from agents where id = $1 and project_id = $2 and deleted_at is null', [
    seniorId,
    projectId,
  ])
  if (!rowCount) throw unknownSenior()
}

const unknownSenior = (): MusterError => invalidRequest('senior_id names no agent of this project.')

/**
 * Refuses a senior that is unknown or reports, over any number of steps, to the agent itself. Locks the project's
 * hierarchy until the transaction ends: two changes that are fine alone and a cycle together must not both pass.
 */
export async function requireNoCycle(tx: Db, projectId: string, agentId: string, seniorId: string): Promise<void> {
  await tx.query(`select pg_advisory_xact_lock(hashtextextended('seniors ' || $1, 0))`, [projectId])
  const { rows } = await tx.query<{ id: string }>(
    `with recursive above as (
       select id, senior_id from agents where id = $1 and project_id = $2 and deleted_at is null
       union
       select a.id, a.senior_id from agents a join above on a.id = above.senior_id
     )
     select id from above`,
    [seniorId, projectId],
  )
  if (rows.length === 0) throw unknownSenior()
  if (rows.some((row) => row.id === agentId)) throw invalidRequest('senior_id would make the agent its own senior.')
}
