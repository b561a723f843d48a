// People start and stop agents, one or all of a project. A stopped agent stays stopped across restarts of the processes.

import { holdTakeUps } from '../agents/take-up-lock.ts'
import { recordAudits } from '../audit/record.ts'
import type { Db, Pool } from '../db/pool.ts'
import { inTransaction } from '../db/transaction.ts'
import type { Journal } from '../journal/journal.ts'
import { STOP_CHANNEL, tellProcesses } from '../journal/wake.ts'
import { conflict, notFound } from '../kernel/errors.ts'
import { LOWEST_ID } from '../kernel/id.ts'
import type { Log } from '../kernel/log.ts'
import { aboutTask } from '../kernel/operation.ts'
import type { Actor } from '../kernel/principal.ts'
import { endUnowned, stopped } from '../runs/end.ts'
import { makeDue } from '../tasks/task-queue.ts'
import { tellDelegators } from './delegators.ts'
import { withdrawEscalations } from './escalate.ts'
import { logOnCommit } from './log-on-commit.ts'
import { changeStatuses } from './statuses.ts'
import { WORK_COLUMNS, type WorkTask } from './work-row.ts'

export interface ControlParts {
  pool: Pool
  journal: Journal
  log: Log
}

/** start: lets agents work · stop: pauses agents and hands their work back · restart: begins running work anew. */
export type Control = 'start' | 'stop' | 'restart'

export interface Controlled {
  projectId: string
  actor: Actor
}

interface ControlledRow {
  id: string
  status: string
  paused_for: string | null
  is_funded: boolean
}

/** Throws if there is no such agent, or if an agent without tokens is started. */
export async function controlAgent(
  parts: ControlParts,
  control: Control,
  { agentId, ...controlled }: Controlled & { agentId: string },
): Promise<void> {
  const owned = await inTransaction(parts.pool, async (tx) => {
    const [agent] = await lockAgents(tx, controlled.projectId, [agentId])
    if (!agent) throw notFound('agent')
    if (control !== 'stop' && !agent.is_funded) {
      throw conflict('The agent has used up its token allocation. Give it tokens first.')
    }
    return act(tx, parts, control, [agent], controlled)
  })
  await tellOwners(parts.pool, owned)
}

const MOST_AT_ONCE = 500

/** Controls all agents of the project in batches. Agents without tokens are not started. */
export async function controlAll(parts: ControlParts, control: Control, controlled: Controlled): Promise<void> {
  for (let after = LOWEST_ID; ; ) {
    const ids = await someAgents(parts.pool, controlled.projectId, after)
    if (ids.length === 0) return
    after = ids.at(-1) ?? after
    const owned = await inTransaction(parts.pool, async (tx) => {
      const agents = await lockAgents(tx, controlled.projectId, ids)
      const able = agents.filter((agent) => isConcerned(agent, control))
      return act(tx, parts, control, able, controlled)
    })
    await tellOwners(parts.pool, owned)
  }
}

/** A start of all agents concerns paused agents only: a stuck agent needs help, not another try at the same task. */
function isConcerned({ status, is_funded: isFunded }: ControlledRow, control: Control): boolean {
  return control === 'stop' || (isFunded && (control === 'restart' || status === 'paused'))
}

async function someAgents(db: Db, projectId: string, after: string): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>(
    `select id from agents where project_id = $1 and deleted_at is null and id > $2 order by id limit $3`,
    [projectId, after, MOST_AT_ONCE],
  )
  return rows.map((row) => row.id)
}

async function lockAgents(tx: Db, projectId: string, ids: readonly string[]): Promise<ControlledRow[]> {
  await holdTakeUps(tx, projectId)
  const { rows } = await tx.query<ControlledRow>(
    `select a.id, a.status, a.paused_for, a.token_allocation is null or coalesce(t.used, 0) < a.token_allocation as is_funded
     from agents a left join agent_tokens t on t.agent_id = a.id
     where a.id = any($1) and a.project_id = $2 and a.deleted_at is null order by a.id for no key update of a`,
    [ids, projectId],
  )
  return rows
}

/** Returns the runs that a process executes and that shall stop; these processes are notified after the commit. */
async function act(
  tx: Db,
  { journal, log }: ControlParts,
  control: Control,
  agents: readonly ControlledRow[],
  controlled: Controlled,
): Promise<string[]> {
  const isChanged = (agent: ControlledRow): boolean =>
    control === 'restart' || (control === 'stop' ? agent.paused_for !== 'stopped' : agent.status !== 'active')
  const ids = agents.filter(isChanged).map((agent) => agent.id)
  if (ids.length === 0) return []
  await noteControl(tx, control, ids, controlled)
  for (const id of ids) {
    const about = { project_id: controlled.projectId, agent_id: id }
    logOnCommit(tx, log, control === 'stop' ? 'agent.stopped' : 'agent.started', about)
  }
  if (control === 'stop') {
    await changeStatuses(tx, log, ids, { event: 'stop', why: 'somebody stopped it.' })
    await tellDelegators(tx, log, ids, 'was stopped')
    await handBackUndecided(tx, log, ids)
    return stopRuns(tx, journal, ids)
  }
  await changeStatuses(tx, log, ids, { event: 'start', why: 'somebody started it.' })
  await freeBlocked(tx, log, ids)
  await makeDue(tx, controlled.projectId, ids)
  return control === 'restart' ? stopRuns(tx, journal, ids, { onlyOwned: true }) : []
}

async function freeBlocked(tx: Db, log: Log, agentIds: readonly string[]): Promise<void> {
  const { rows } = await tx.query<WorkTask>(
    `update tasks set status = 'pending', attempts = 0, retry_at = null, progress_note = null, is_resumed = true
     where assigned_to = any($1) and status = 'blocked' returning ${WORK_COLUMNS}`,
    [agentIds],
  )
  for (const task of rows) logOnCommit(tx, log, 'task.freed', aboutTask(task))
  await withdrawEscalations(tx, log, rows)
}

/**
 * Attempts that paused because the outcome of a call is unknown have ended. A person's decision is kept, and the attempt
 * after the next start uses it.
 */
async function handBackUndecided(tx: Db, log: Log, agentIds: readonly string[]): Promise<void> {
  const { rows } = await tx.query<WorkTask>(
    `update tasks set status = 'pending', progress_note = null
     where assigned_to = any($1) and status = 'in-progress' and exists (
       select from agent_runs r where r.id = attempt_run_id and r.pause_reason = 'outcome_unknown' and r.completed_at is not null)
     returning ${WORK_COLUMNS}`,
    [agentIds],
  )
  for (const task of rows) logOnCommit(tx, log, 'task.handed_back', aboutTask(task))
}

/**
 * Pauses runs without an owner that are ready, or wait for the month's tokens, a provider or a flow run, and returns the owned
 * runs, which must be told. Runs that wait for people pause when they wake. A run whose flow run has ended ends too.
 */
async function stopRuns(
  tx: Db,
  journal: Journal,
  agentIds: readonly string[],
  { onlyOwned = false } = {},
): Promise<string[]> {
  const { rows } = await tx.query<{ id: string; owner: string | null; ancestors: string[]; may_end: boolean }>(
    `update agent_runs set stop_requested_at = muster.now()
     where agent_id = any($1) and task_id is not null and completed_at is null and is_task_open
       and (owner is not null or not $2)
     returning id, owner, ancestors, case when started_flow_run_id is null
       then ready_at is not null or coalesce(waits_for in ('month', 'provider'), false) else open_children > 0 end as may_end`,
    [agentIds, onlyOwned],
  )
  for (const { id, owner, ancestors, may_end: mayEnd } of rows) {
    if (owner === null && mayEnd) await endUnowned(tx, journal, { id, ancestors }, stopped('stopped', null))
  }
  return rows.filter((row) => row.owner !== null).map((row) => row.id)
}

async function tellOwners(pool: Pool, runIds: readonly string[]): Promise<void> {
  for (const runId of runIds) await tellProcesses(pool, STOP_CHANNEL, runId)
}

function noteControl(
  tx: Db,
  control: Control,
  agentIds: readonly string[],
  { projectId, actor }: Controlled,
): Promise<void> {
  const note = { action: `agent.${control}`, actor, projectId, targetType: 'agent' }
  const notes = agentIds.map((targetId) => ({ ...note, targetId }))
  return recordAudits(tx, notes)
}
