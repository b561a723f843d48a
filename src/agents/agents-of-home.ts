// Agents over many projects: those whose tokens run short, and the number in each project.
import { type RowOf, tellInstants } from '../db/instants.ts'
import { byId, findNewestOfEach, type NewestOfEach } from '../db/newest-of-each.ts'
import type { Db } from '../db/pool.ts'
import type { AgentOfHome, HomeCount } from '../kernel/home.ts'
import { MARKS_OF } from './agents.ts'

/** Few agents are marked, so the marks are read and not the agents of each project. */
const SHORT = `select a.project_id, a.id, coalesce(t.last_worked_at, a.created_at) as at
  from agent_tokens t join agents a on a.id = t.agent_id
  where t.mark > 0 and t.mark = any($3) and a.project_id = any($1::uuid[]) and a.deleted_at is null`

export const findShortAgents = (db: Db, projects: readonly string[], limit: number): Promise<NewestOfEach> =>
  findNewestOfEach(db, SHORT, { projects, limit, more: [MARKS_OF.short] })

export async function readShortAgents(db: Db, ids: readonly string[]): Promise<ReadonlyMap<string, AgentOfHome>> {
  const { rows } = await db.query<RowOf<AgentOfHome>>(
    `select a.id, a.name, a.token_allocation, a.created_at, t.used as token_used, t.last_worked_at
     from agents a join agent_tokens t on t.agent_id = a.id where a.id = any($1::uuid[])`,
    [ids],
  )
  return byId(rows.map((row) => tellInstants(row)))
}

const MOST_AGENTS = 200

export async function countAgentsOfEach(db: Db, projects: readonly string[]): Promise<ReadonlyMap<string, HomeCount>> {
  const { rows } = await db.query<{ project_id: string; count: number }>(
    `select p.id as project_id, c.count from unnest($1::uuid[]) as p (id) cross join lateral (
       select count(*)::int as count from (
         select from agents where project_id = p.id and deleted_at is null limit ${MOST_AGENTS + 1}) a
     ) c`,
    [projects],
  )
  return new Map(
    rows.map(({ project_id, count }) => [
      project_id,
      { count: Math.min(count, MOST_AGENTS), has_more: count > MOST_AGENTS },
    ]),
  )
}
