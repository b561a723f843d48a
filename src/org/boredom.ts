// Agents without a task for long are bored. Each senior is told by one open task, to which further agents are added.

import type { Db } from '../db/pool.ts'
import { cleanJson } from '../journal/clean-json.ts'
import { cutText } from '../kernel/cut-text.ts'
import { newId } from '../kernel/id.ts'
import type { Log } from '../kernel/log.ts'
import { MAX_TITLE } from '../kernel/task.ts'
import { dueSql } from '../tasks/task-queue.ts'
import { logOnCommit } from './log-on-commit.ts'
import { type ChangedAgent, changeStatuses } from './statuses.ts'

export async function becomeBored(tx: Db, log: Log, agentIds: readonly string[], thresholdMs: number): Promise<void> {
  const idleFor = inWords(thresholdMs)
  const agents = await changeStatuses(tx, log, agentIds, { event: 'idle', why: `it had no task for ${idleFor}.` })
  const bySenior = new Map<string, ChangedAgent[]>()
  for (const agent of agents) {
    if (agent.status !== 'bored' || agent.was === 'bored' || agent.senior_id === null) continue
    bySenior.set(agent.senior_id, [...(bySenior.get(agent.senior_id) ?? []), agent])
  }
  if (bySenior.size > 0) await tellSeniors(tx, log, bySenior, idleFor)
}

async function tellSeniors(
  tx: Db,
  log: Log,
  bySenior: ReadonlyMap<string, readonly ChangedAgent[]>,
  idleFor: string,
): Promise<void> {
  const told = Array.from(bySenior, ([seniorId, bored]) => ({
    senior_id: seniorId,
    id: newId(),
    agents: bored.map((agent) => agent.id),
    title: titleOf(bored),
    description: `${bored.map((agent) => agent.name).join(', ')} had no task for ${idleFor}. Check how work is spread.`,
    from: bored[0]?.id,
  }))
  const { rows } = await tx.query<{ id: string; project_id: string; assigned_to: string; from_id: string }>(
    `with told as (
       select * from jsonb_to_recordset($1::jsonb)
         as g (senior_id uuid, id uuid, agents jsonb, title text, description text, "from" uuid)
     ), open as (
       select distinct on (t.assigned_to) t.id, t.assigned_to from told g join tasks t on t.assigned_to = g.senior_id
       where t.kind = 'work' and t.status in ('pending', 'in-progress') and t.metadata ? 'boredAgentIds'
         -- People write metadata, too.
         and t.is_decided and t.created_by->>'type' = 'agent'
       order by t.assigned_to, t.created_at
     ), added as (
       update tasks t set metadata = jsonb_set(t.metadata, '{boredAgentIds}',
         (select jsonb_agg(distinct id) from jsonb_array_elements((t.metadata->'boredAgentIds') || g.agents) as each (id)))
       from open o join told g on g.senior_id = o.assigned_to where t.id = o.id
     ), there as materialized (
       select id, project_id from agents where id in (select senior_id from told) and deleted_at is null order by id for key share
     ), made as (
       insert into tasks (id, project_id, kind, title, description, priority, assigned_to, created_by, metadata, is_decided)
       select g.id, s.project_id, 'work', g.title, g.description, 'low', s.id,
         jsonb_build_object('type', 'agent', 'id', g."from"), jsonb_build_object('boredAgentIds', g.agents), true
       from told g join there s on s.id = g.senior_id
       where not exists (select from open o where o.assigned_to = s.id)
       returning id, assigned_to, project_id, created_by->>'id' as from_id
     ), ${dueSql('select assigned_to, project_id from made')}
     select * from made`,
    [cleanJson(told)],
  )
  for (const { id, project_id, assigned_to: to, from_id: from } of rows) {
    const about = { project_id, agent_id: from, task_id: id, correlation_id: id }
    logOnCommit(tx, log, 'task.escalated', about, { to_agent_id: to, priority: 'low' })
  }
}

function titleOf(bored: readonly ChangedAgent[]): string {
  const [first] = bored
  const others = bored.length === 1 ? 'is' : `and ${bored.length - 1} more are`
  return cutText(`Agent ${first?.name} ${others} bored`, MAX_TITLE)
}

function inWords(ms: number): string {
  const minutes = Math.round(ms / 60_000)
  if (minutes >= 1) return `${minutes} ${minutes === 1 ? 'minute' : 'minutes'}`
  const seconds = Math.round(ms / 100) / 10
  return `${seconds} ${seconds === 1 ? 'second' : 'seconds'}`
}
