import { getAgent } from '../agents/agents.ts'
import type { Db } from '../db/pool.ts'
import type { Settlement } from '../journal/claim.ts'
import { insertRun } from '../journal/insert-run.ts'
import { defined } from '../kernel/defined.ts'
import { conflict, invalidRequest, runNotFound } from '../kernel/errors.ts'
import { newId } from '../kernel/id.ts'
import type { PauseReason, ResumeInput, Run, RunStatus } from '../kernel/run.ts'
import { closeOutcomeTask } from '../tasks/outcome-tasks.ts'
import { getRun } from './read-runs.ts'
import { continuationOf } from './run-row.ts'
import { requireEnabled } from './start.ts'

export interface PausedRow {
  /** Null for a part of a supervisor system. */
  agent_id: string | null
  status: RunStatus
  pause_reason: PauseReason | null
  completed_at: Date | null
  step_count: number
  max_steps: number | null
  timeout: number | null
  last_seq: number
  rights: Record<string, unknown>
  payers: string[]
  chain_depth: number
  parent_run_id: string | null
  depth: number
  entry_id: string | null
  task_id: string | null
}

/**
 * A new run that continues a paused one, with its journal as the history. If the outcome of a call was unknown, the
 * person's word is its result. Another continuation may be made only if the last one failed or was cancelled.
 */
export async function resumeRun(db: Db, projectId: string, runId: string, input: ResumeInput): Promise<Run> {
  const paused = await lockPaused(db, projectId, runId)
  requireOutcome(paused.pause_reason, input)
  await requireNotOfTask(db, paused, runId)
  const agent = await getAgent(db, projectId, requireAgent(paused))
  requireEnabled(agent)
  if (agent.flow_type === 'flow' && agent.prompt === null && agent.prompt_id === null && paused.step_count > 0) {
    throw conflict(`The agent ${agent.name} is a flow now and has no prompt to continue the steps of this run.`)
  }
  const id = newId()
  const settled = await settlement(db, runId, input)
  const { max_steps: maxSteps, timeout: timeoutMs } = { ...agentLimits(paused), ...given(input) }
  await insertRun(db, {
    id,
    projectId,
    agentId: agent.id,
    trigger: { type: 'resume', resumed_from: runId, ...(settled ? { settled } : {}) },
    input: input.input ?? null,
    maxSteps,
    timeoutMs,
    resumedFrom: runId,
    rights: paused.rights,
    payers: paused.payers,
    chainDepth: paused.chain_depth,
    // No run above waits for the new run, and the streams above may have ended.
    parentRunId: paused.parent_run_id,
    depth: paused.depth,
    entryId: paused.entry_id,
    taskId: await takeTaskAlong(db, paused, runId, id),
    base: { runId, seq: paused.last_seq, steps: paused.step_count },
  })
  if (settled) await closeOutcomeTask(db, runId, settled.outcome)
  return getRun(db, projectId, id)
}

/** Throws for a run of a supervisor system: the supervisor decides about it, or it goes on under its own id. */
export function requireAgent({ agent_id: agentId }: Pick<PausedRow, 'agent_id'>): string {
  if (agentId === null) {
    throw conflict(
      'This run belongs to a supervisor. One that was escalated or unavailable is continued with POST /v1/agent/run and options.run_id; any other has ended.',
    )
  }
  return agentId
}

/** An attempt is continued only with its task. A person's word about a call is for the attempt that made the call. */
async function requireNotOfTask(db: Db, { task_id: taskId, pause_reason: reason }: PausedRow, runId: string) {
  if (taskId === null || reason === 'outcome_unknown') return
  const { rowCount } = await db.query(
    `select from tasks where id = $1 and attempt_run_id = $2 and status = 'pending'`,
    [taskId, runId],
  )
  if (reason === 'stopped' && rowCount) {
    throw conflict('This run is an attempt at a task: it goes on when its agent is started.')
  }
  throw conflict(
    'This run was an attempt at a task, and the task shows its outcome. To try the task again, set it to pending.',
  )
}

/** An attempt at a task that waited for a person's word goes on as the same attempt. */
async function takeTaskAlong(db: Db, paused: PausedRow, runId: string, newRunId: string): Promise<string | null> {
  if (paused.task_id === null || paused.pause_reason !== 'outcome_unknown') return null
  const { rowCount } = await db.query(
    `update tasks set attempt_run_id = $3 where id = $1 and attempt_run_id = $2 and status = 'in-progress'`,
    [paused.task_id, runId, newRunId],
  )
  return rowCount === 1 ? paused.task_id : null
}

const agentLimits = ({ max_steps, timeout }: PausedRow) => ({ max_steps, timeout })

const given = ({ max_steps, timeout }: ResumeInput) => defined({ max_steps, timeout })

/** Locks the run, so that it is resumed once. Throws if the run is unknown, not paused for good, or already resumed. */
export async function lockPaused(db: Db, projectId: string, runId: string): Promise<PausedRow> {
  const { rows } = await db.query<PausedRow>(
    `select agent_id, status, pause_reason, completed_at, step_count, max_steps, timeout, last_seq, rights, payers, chain_depth,
       parent_run_id, depth, entry_id, task_id
     from agent_runs where id = $1 and project_id = $2 for update`,
    [runId, projectId],
  )
  const row = rows[0]
  if (!row) throw runNotFound()
  if (row.status !== 'paused') throw conflict(`Only a paused run can be resumed; this one is ${row.status}.`)
  requireAgent(row)
  if (row.completed_at === null) throw conflict(waitSentence(row.pause_reason))
  await requireNotResumed(db, runId)
  return row
}

/** The check follows the lock, so that of two resumes one is refused. */
async function requireNotResumed(db: Db, runId: string): Promise<void> {
  const { rows } = await db.query<{ id: string }>(continuationOf('$1'), [runId])
  if (rows[0]) throw conflict('This run was resumed already.', { run_id: rows[0].id })
}

const waitSentence = (reason: PauseReason | null): string =>
  reason === 'human'
    ? 'This run waits for an answer: complete its task and it goes on by itself.'
    : reason === 'budget'
      ? 'This run waits for tokens and goes on by itself when there are tokens.'
      : reason === 'unavailable'
        ? 'This run waits for its provider and continues by itself; try-now tries it at once.'
        : 'This run goes on by itself when the project is no longer halted.'

function requireOutcome(reason: PauseReason | null, { outcome, result }: ResumeInput): void {
  const isUnknown = reason === 'outcome_unknown'
  if (isUnknown && !outcome) {
    throw invalidRequest('Give the outcome of the call: outcome must be "done" or "not_done".')
  }
  if (outcome === 'not_done' && result !== undefined) {
    throw invalidRequest('result is the result of a call that was done: send it only with outcome "done".')
  }
  if (!isUnknown && (outcome || result !== undefined)) {
    throw invalidRequest('outcome and result are for runs that paused with outcome_unknown.')
  }
}

/** The person's word is stored in the trigger: the new run's owner journals it first of all. */
async function settlement(db: Db, runId: string, { outcome, result }: ResumeInput): Promise<Settlement | null> {
  if (!outcome) return null
  const { rows } = await db.query<{ data: { call_id?: string } }>(
    `select data from run_events where run_id = $1 and kind = 'run.paused' and not data ? 'run_id'
     order by seq desc limit 1`,
    [runId],
  )
  const callId = rows[0]?.data.call_id
  if (callId === undefined) throw new Error('a run paused with outcome_unknown does not name the call')
  return { call_id: callId, outcome, result: result ?? null }
}
