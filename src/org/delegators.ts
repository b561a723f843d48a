import type { Db } from '../db/pool.ts'
import type { Log } from '../kernel/log.ts'
import { sendMessages } from './messages.ts'

interface DelegatedTask {
  id: string
  project_id: string
  title: string
  agent_id: string
  agent_name: string
  delegator: string
  changes: number
}

/** SQL for the id of the agent that delegated the task. People write metadata too, so the field may hold anything. */
const DELEGATOR = `case when t.metadata->>'delegated_by' ~ '^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$'
  then (t.metadata->>'delegated_by')::uuid end`

/** Agents that delegated open tasks to these agents get one message each that the task waits. */
export async function tellDelegators(tx: Db, log: Log, agentIds: readonly string[], what: string): Promise<void> {
  const { rows } = await tx.query<DelegatedTask>(
    `select t.id, t.project_id, t.title, a.id as agent_id, a.name as agent_name, d.id as delegator,
       (select count(*)::int from agent_messages m where m.task_id = t.id and m.kind = 'delegation') as changes
     from agents a join tasks t on t.assigned_to = a.id cross join lateral (
       select id from agents where id = ${DELEGATOR} and project_id = t.project_id and deleted_at is null limit 1) d
     where a.id = any($1) and t.status in ('pending', 'in-progress', 'blocked') and d.id <> a.id`,
    [agentIds],
  )
  await sendMessages(
    tx,
    rows.map(({ id, project_id: projectId, title, agent_id: from, agent_name: name, delegator, changes }) => ({
      projectId,
      from,
      to: delegator,
      kind: 'delegation' as const,
      body: `${name} ${what}: the task "${title}" waits.`,
      taskId: id,
      key: `waits ${id} ${changes}`,
    })),
    log,
  )
}
