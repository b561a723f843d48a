import type { Db } from '../db/pool.ts'
import { type AgentStatus, type PausedFor, type StatusEvent, stateAfter } from '../kernel/agent-status.ts'
import { newId } from '../kernel/id.ts'
import type { Log } from '../kernel/log.ts'
import { watchIdle } from '../tasks/task-queue.ts'
import { logOnCommit } from './log-on-commit.ts'
import { sendMessages } from './messages.ts'

interface AgentState {
  id: string
  project_id: string
  name: string
  senior_id: string | null
  status: AgentStatus
  paused_for: PausedFor | null
}

/** An agent after a change, with its status before the change. */
export interface ChangedAgent extends AgentState {
  was: AgentStatus
}

export interface StatusChange {
  event: StatusEvent
  /** The reason that the senior is told. */
  why: string
  /** The task that caused the change, for the log. */
  task?: { id: string; root_task_id: string } | undefined
}

/** Null if there is no such agent. */
export async function changeStatus(
  tx: Db,
  log: Log,
  { agentId, ...change }: StatusChange & { agentId: string },
): Promise<ChangedAgent | null> {
  const [agent] = await changeStatuses(tx, log, [agentId], change)
  return agent ?? null
}

/** Changes statuses as the table of transitions allows, tells the seniors, and returns the agents after the change. */
export async function changeStatuses(
  tx: Db,
  log: Log,
  agentIds: readonly string[],
  { event, why, task }: StatusChange,
): Promise<ChangedAgent[]> {
  const { rows } = await tx.query<AgentState>(
    `select id, project_id, name, senior_id, status, paused_for from agents
     where id = any($1) and deleted_at is null order by id for no key update`,
    [agentIds],
  )
  const moves = rows.map((before) => ({ before, after: { ...before, ...stateAfter(before, event) } }))
  await write(tx, moves)
  const changed = moves.filter(({ before, after }) => before.status !== after.status)
  const active = changed.flatMap(({ after }) => (after.status === 'active' ? [after.id] : []))
  if (active.length > 0) await watchIdle(tx, active)
  for (const { before, after } of changed) {
    const ids = { project_id: after.project_id, agent_id: after.id }
    const about = { ...ids, task_id: task?.id, correlation_id: task?.root_task_id }
    logOnCommit(tx, log, 'agent.status_changed', about, { from: before.status, to: after.status, event })
  }
  await tellSeniors(tx, log, changed, why)
  return moves.map(({ before, after }) => ({ ...after, was: before.status }))
}

interface Move {
  before: AgentState
  after: AgentState
}

async function write(tx: Db, moves: readonly Move[]): Promise<void> {
  const written = moves
    .filter(({ before, after }) => before.status !== after.status || before.paused_for !== after.paused_for)
    .map(({ after }) => after)
  if (written.length === 0) return
  await tx.query(
    `update agents a set status = g.status, paused_for = g.paused_for
     from unnest($1::uuid[], $2::text[], $3::text[]) as g (id, status, paused_for) where a.id = g.id`,
    [written.map(({ id }) => id), written.map(({ status }) => status), written.map((agent) => agent.paused_for)],
  )
}

function tellSeniors(tx: Db, log: Log, moves: readonly Move[], why: string): Promise<void> {
  return sendMessages(
    tx,
    moves.flatMap(({ before, after: { id, project_id: projectId, name, senior_id: to, status } }) =>
      to === null
        ? []
        : [
            {
              projectId,
              from: id,
              to,
              kind: 'status' as const,
              body: `${name} is ${status} (it was ${before.status}): ${why}`,
              key: `status ${newId()}`,
            },
          ],
    ),
    log,
  )
}
