// The queue of an agent's tasks. An agent is due when it may have a task to start; org/ starts it. A transaction that
// gives an agent a task, or lets the agent work again, also makes the agent due.
import { anyOf, listAt } from '../db/lists.ts'
import type { Db, PreparedSql } from '../db/pool.ts'

/** A notice names a project in which agents are due; without a name the organisation must look everywhere. */
export const TASK_CHANNEL = 'muster_tasks'

/**
 * A part of a WITH that makes the agents of the query `who` (id, project_id) due; ids that name no agent are passed
 * over. If the condition `isAnnounced` holds, the commit notifies the processes that start tasks.
 */
export const dueSql = (who: string, { at = 'muster.now()', isAnnounced = 'false' } = {}): string => `
  due as (
    insert into task_queues as q (agent_id, project_id, due_at)
    select a.id, a.project_id, ${at} from (${who}) as w (id, project_id)
    join agents a on a.id = w.id and a.project_id = w.project_id and a.deleted_at is null
    group by a.id order by a.id
    on conflict (agent_id) do update set due_at = least(q.due_at, excluded.due_at), check_at = muster.now()
    returning case when ${isAnnounced} then pg_notify('${TASK_CHANNEL}', q.project_id::text) end
  )`

const MAKE_DUE: PreparedSql = {
  name: 'make_due',
  text: `with ${dueSql(`select unnest(${listAt(2)}), $1::uuid`, { at: `muster.now() + $3 * interval '1 ms'` })} select`,
}

/** Makes agents due now, or after `inMs`. An agent that is due earlier stays so. */
export async function makeDue(
  db: Db,
  projectId: string,
  agentIds: readonly (string | null)[],
  { inMs = 0 } = {},
): Promise<void> {
  const ids = agentIds.filter((id) => id !== null)
  if (ids.length > 0) await db.query(MAKE_DUE, [projectId, ids, inMs])
}

const FREED: PreparedSql = {
  name: 'agents_freed',
  text: `
    insert into task_queues as q (agent_id, project_id, due_at)
    select a.id, a.project_id, case when exists (select from tasks t where t.assigned_to = a.id and t.status = 'pending'
      and t.kind = 'work' and t.waits_for is null) then muster.now() end
    from agents a where a.id = ${anyOf(1)} and a.deleted_at is null order by a.id
    on conflict (agent_id) do update set due_at = least(q.due_at, excluded.due_at), check_at = muster.now()`,
}

/** Attempts of these agents have ended: agents with another task become due, and idle agents are watched. */
export async function noteFreed(db: Db, agentIds: readonly string[]): Promise<void> {
  await db.query(FREED, [agentIds])
}

/** The organisation watches these agents, because idle agents may become bored. */
export async function watchIdle(db: Db, agentIds: readonly string[]): Promise<void> {
  await db.query(
    `insert into task_queues as q (agent_id, project_id)
     select id, project_id from agents where id = any($1) and deleted_at is null order by id
     on conflict (agent_id) do update set check_at = muster.now()`,
    [agentIds],
  )
}
