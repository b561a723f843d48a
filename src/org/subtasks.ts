import type { Db, PreparedSql } from '../db/pool.ts'
import { cleanJson } from '../journal/clean-json.ts'
import { newId } from '../kernel/id.ts'
import type { Log } from '../kernel/log.ts'
import { dueSql } from '../tasks/task-queue.ts'
import { messageId, noteSent, type SentMessage } from './messages.ts'
import type { WorkTask } from './work-row.ts'

export interface NewSubtask {
  title: string
  description: string
  assignedTo: string
  /** The positions of the subtasks that must be completed first. */
  dependsOn: readonly number[]
  planDepth: number
  metadata: Readonly<Record<string, unknown>>
}

/** A task and the parts that it was split into; a delegated task has one part. */
export interface Split {
  parent: WorkTask
  subtasks: readonly NewSubtask[]
}

/** One statement for the subtasks, their parents' wait, and the messages to and queues of the agents that get work. */
const ADD: PreparedSql = {
  name: 'subtasks_add',
  text: `
    with planned as (
      select * from jsonb_to_recordset($1::jsonb) as g (id uuid, parent_id uuid, place int, title text, description text,
        chosen uuid, metadata jsonb, plan_depth int, depends_on uuid[], message_id uuid, message text)
    ), parents as (
      select t.* from tasks t where t.id in (select parent_id from planned)
    ), there as materialized (
      -- None of them is deleted until the transaction ends.
      select id from agents where id in (select chosen from planned) and deleted_at is null order by id for key share
    ), given as (
      select g.*, coalesce(a.id, p.assigned_to) as assigned_to
      from planned g join parents p on p.id = g.parent_id left join there a on a.id = g.chosen
    ), made as (
      insert into tasks (id, project_id, kind, title, description, priority, assigned_to, created_by, parent_task_id,
        metadata, chain_depth, plan_depth, depends_on, waits_for, run_id, created_at)
      select g.id, p.project_id, 'work', g.title, g.description, p.priority, g.assigned_to,
        jsonb_build_object('type', 'agent', 'id', p.assigned_to), p.id, g.metadata, p.chain_depth, g.plan_depth,
        g.depends_on, case when cardinality(g.depends_on) > 0 then 'dependencies' end, p.attempt_run_id,
        -- They are listed in the order of the plan.
        muster.now() + g.place * interval '1 us'
      from given g join parents p on p.id = g.parent_id
    ), waiting as (
      update tasks t set waits_for = 'subtasks', progress_note = 'Waits for ' || n.count || ' subtasks.'
      from (select parent_id, count(*) from given group by parent_id) n where t.id = n.parent_id
    ), told as (
      insert into agent_messages (id, project_id, from_agent, to_agent, kind, body, task_id)
      select g.message_id, p.project_id, p.assigned_to, g.assigned_to, 'delegation', g.message, g.id
      from given g join parents p on p.id = g.parent_id where g.assigned_to <> p.assigned_to
      returning project_id, from_agent, to_agent, kind, task_id
    ), ${dueSql('select g.assigned_to as id, p.project_id from given g join parents p on p.id = g.parent_id')}
    select t.*, coalesce(p.root_task_id, p.id) as root_task_id
    from told t join given g on g.id = t.task_id join parents p on p.id = g.parent_id`,
}

/** Each parent then waits for its subtasks. A subtask has the chain depth of its parent. */
export async function addSubtasks(tx: Db, log: Log, splits: readonly Split[]): Promise<void> {
  if (splits.length === 0) return
  const { rows } = await tx.query<SentMessage>(ADD, [cleanJson(splits.flatMap(rowsOf))])
  noteSent(tx, log, rows)
}

function rowsOf({ parent, subtasks }: Split) {
  const ids = subtasks.map(() => newId())
  return subtasks.map(({ title, description, assignedTo, dependsOn, planDepth, metadata }, place) => ({
    id: ids[place],
    parent_id: parent.id,
    place,
    title,
    description,
    chosen: assignedTo,
    metadata,
    plan_depth: planDepth,
    depends_on: dependsOn.map((each) => ids[each]),
    message_id: messageId(`delegation ${ids[place]} ${assignedTo}`),
    message: `You were given the task "${title}".`,
  }))
}
