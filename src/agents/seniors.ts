import type { Db } from '../db/pool.ts'
import { invalidRequest, type MusterError } from '../kernel/errors.ts'

/** Refuses an unknown senior. A known senior cannot be deleted until the transaction ends. */
export async function requireSenior(tx: Db, projectId: string, seniorId: string): Promise<void> {
  const [senior] = await holdAgents(tx, projectId, [seniorId])
  if (!senior) throw unknownSenior()
  requireRoom((await readAbove(tx, projectId, seniorId)).length + 1)
}

const MOST_LEVELS = 100

function requireRoom(levels: number): void {
  if (levels > MOST_LEVELS) throw invalidRequest(`senior_id: an organisation has ${MOST_LEVELS} levels at most.`)
}

/** Returns the ids of existing agents. None of these agents can be deleted until the transaction ends. */
export async function holdAgents(tx: Db, projectId: string, ids: readonly string[]): Promise<string[]> {
  const { rows } = await tx.query<{ id: string }>(
    `select id from agents where id = any($1) and project_id = $2 and deleted_at is null order by id for key share`,
    [ids, projectId],
  )
  return rows.map((row) => row.id)
}

const unknownSenior = (): MusterError => invalidRequest('senior_id names no agent of this project.')

/**
 * Locks the project's hierarchy: two changes that are fine alone and a cycle together must not both pass. Callers take
 * this lock before they lock any agent.
 */
export async function lockHierarchy(tx: Db, projectId: string): Promise<void> {
  await tx.query(`select pg_advisory_xact_lock(hashtextextended('seniors ' || $1, 0))`, [projectId])
}

/** Refuses a senior that is unknown or reports to the agent itself. The caller has locked the hierarchy. */
export async function requireNoCycle(tx: Db, projectId: string, agentId: string, seniorId: string): Promise<void> {
  const [senior] = await holdAgents(tx, projectId, [seniorId])
  if (!senior) throw unknownSenior()
  const above = await readAbove(tx, projectId, seniorId)
  if (above.includes(agentId)) throw invalidRequest('senior_id would make the agent its own senior.')
  requireRoom(above.length + (await countLevels(tx, agentId)))
}

async function readAbove(tx: Db, projectId: string, seniorId: string): Promise<string[]> {
  const { rows } = await tx.query<{ id: string }>(
    `with recursive above as (
       select id, senior_id from agents where id = $1 and project_id = $2 and deleted_at is null
       union
       select a.id, a.senior_id from agents a join above on a.id = above.senior_id
     )
     select id from above`,
    [seniorId, projectId],
  )
  return rows.map((row) => row.id)
}

/** Counts the levels from the agent down; the agent itself is the first. */
async function countLevels(tx: Db, agentId: string): Promise<number> {
  const { rows } = await tx.query<{ levels: number }>(
    `with recursive below (id, level) as (
       select $1::uuid, 1
       union all
       select a.id, level + 1 from agents a join below on a.senior_id = below.id
       where a.deleted_at is null and level <= ${MOST_LEVELS}
     )
     select max(level) as levels from below`,
    [agentId],
  )
  return rows[0]?.levels ?? 1
}
