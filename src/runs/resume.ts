import { getAgent } from '../agents/agents.ts'
import type { Db } from '../db/pool.ts'
import { getSettings } from '../identity/settings.ts'
import type { Agent } from '../kernel/agent.ts'
import { conflict, invalidRequest, type MusterError, runNotFound } from '../kernel/errors.ts'
import { newId } from '../kernel/id.ts'
import type { PauseReason, ResumeInput, Run } from '../kernel/run.ts'
import { isResolved, type TaskStatus } from '../kernel/task.ts'
import {
  type EarlierRun,
  hasStartedFlow,
  insertContinuation,
  lockEarlier,
  type NewContinuation,
  newestOfChain,
} from './continue-run.ts'
import { recordDecision } from './decisions.ts'
import { getRun } from './read-runs.ts'
import { IS_GIVEN_UP } from './run-row.ts'
import { requireEnabled } from './start.ts'

/**
 * A new run that continues a run that failed, was cancelled or paused for good, with its journal as the history. If the
 * outcome of a call was unknown, the person's word is its result; while other calls are undecided, the word is kept and
 * the run is returned as it is.
 */
export async function resumeRun(
  db: Db,
  projectId: string,
  runId: string,
  input: ResumeInput,
  { isRecorded = false }: { isRecorded?: boolean } = {},
): Promise<Run> {
  const earlier = await lockResumable(db, projectId, runId)
  requireOutcome(earlier.pause_reason, input)
  if (!input.outcome) await requireFree(db, earlier)
  else if (earlier.task_id !== null && !(await isAttemptOf(db, earlier.task_id, runId))) {
    throw await whyNotOfTask(db, earlier.task_id)
  } else if (await isGivenUp(db, runId)) throw leafConflict(earlier)
  const agent = await getAgent(db, projectId, requireAgent(earlier))
  requireEnabled(agent)
  await requireSameKind(db, agent, earlier)
  const id = newId()
  const settled = await recordDecision(db, runId, input, isRecorded)
  if (settled === null) return getRun(db, projectId, runId)
  await insertContinuation(db, earlier, {
    id,
    trigger: { ...triggerOf(earlier), ...(settled.length > 0 ? { settled } : {}) },
    input: input.input ?? null,
    maxSteps: input.max_steps ?? agent.max_steps ?? (await subRunLimit(db, earlier)),
    timeoutMs: input.timeout ?? agent.default_timeout,
    taskId: await takeTaskAlong(db, earlier, id),
  })
  return getRun(db, projectId, id)
}

/** Throws if the agent became a flow or is no longer a flow, so that it cannot continue the history of the run. */
export async function requireSameKind(db: Db, agent: Agent, earlier: EarlierRun): Promise<void> {
  if (agent.flow_type !== 'flow') {
    if (!(await hasStartedFlow(db, earlier.id))) return
    throw conflict(`The agent ${agent.name} is no longer a flow, so it cannot continue the flow run of this run.`)
  }
  if (agent.prompt === null && agent.prompt_id === null && earlier.step_count > 0) {
    throw conflict(`The agent ${agent.name} is a flow now and has no prompt to continue the steps of this run.`)
  }
}

/** Resuming an attempt at a task makes another attempt at the same task. */
const triggerOf = ({ id, task_id: taskId }: EarlierRun): NewContinuation['trigger'] =>
  taskId === null ? { type: 'resume', resumed_from: id } : { type: 'task', task_id: taskId, resumed_by: 'person' }

/** A sub-run is bounded even if its agent is not. */
async function subRunLimit(
  db: Db,
  { parent_run_id: parent, project_id: projectId }: EarlierRun,
): Promise<number | null> {
  return parent === null ? null : (await getSettings(db, projectId)).subagent_max_steps
}

/** Throws for a run of a supervisor system: the supervisor decides about it, or it goes on under its own id. */
export function requireAgent({ agent_id: agentId }: Pick<EarlierRun, 'agent_id'>): string {
  if (agentId === null) {
    throw conflict(
      'This run belongs to a supervisor. One that was escalated or unavailable is continued with POST /v1/agent/run and options.run_id; any other has ended.',
    )
  }
  return agentId
}

/** Throws if something above the run decides about its continuation: a task, a flow run, or a run that has not ended. */
async function requireFree(db: Db, earlier: EarlierRun): Promise<void> {
  if (earlier.task_id !== null) throw await whyNotOfTask(db, earlier.task_id)
  if (earlier.flow_run_id !== null) throw leafConflict(earlier)
  if (earlier.is_parent_open) {
    throw conflict('The run that started this one has not ended and decides about it. Cancel that run first.', {
      run_id: await newestOfChain(db, earlier.parent_run_id ?? earlier.id),
    })
  }
}

const leafConflict = ({ flow_run_id: id }: Pick<EarlierRun, 'flow_run_id'>): MusterError =>
  conflict('This run is a leaf of a flow run. Resume the flow run: finished steps are kept.', {
    flow_run_id: id,
  })

async function isGivenUp(db: Db, runId: string): Promise<boolean> {
  return (await db.query(`select from agent_runs where id = $1 and ${IS_GIVEN_UP}`, [runId])).rowCount === 1
}

async function whyNotOfTask(db: Db, taskId: string): Promise<MusterError> {
  const { rows } = await db.query<{ status: TaskStatus }>('select status from tasks where id = $1', [taskId])
  const status = rows[0]?.status
  const details = { task_id: taskId }
  if (status === 'blocked' || status === 'failed') {
    return conflict(
      'This run was an attempt at a task. Set the task to pending, and the next attempt continues it.',
      details,
    )
  }
  return status === undefined || isResolved(status)
    ? conflict(`This run was an attempt at a task that is ${status ?? 'gone'}.`, details)
    : conflict('This run was an attempt at an open task, whose next attempt decides about it.', details)
}

async function isAttemptOf(db: Db, taskId: string, runId: string): Promise<boolean> {
  const { rowCount } = await db.query(
    `select from tasks where id = $1 and attempt_run_id = $2 and status = 'in-progress'`,
    [taskId, runId],
  )
  return rowCount === 1
}

/** An attempt at a task that waited for a person's word goes on as the same attempt. */
async function takeTaskAlong(db: Db, earlier: EarlierRun, newRunId: string): Promise<string | null> {
  if (earlier.task_id === null) return null
  const { rowCount } = await db.query(
    `update tasks set attempt_run_id = $3, last_run_id = $3
     where id = $1 and attempt_run_id = $2 and status = 'in-progress'`,
    [earlier.task_id, earlier.id, newRunId],
  )
  if (rowCount !== 1) throw await whyNotOfTask(db, earlier.task_id)
  return earlier.task_id
}

/** Locks the run, so that it is resumed once. Throws if it is unknown, completed, not at its end, or already resumed. */
export async function lockResumable(db: Db, projectId: string, runId: string): Promise<EarlierRun> {
  const earlier = await lockEarlier(db, projectId, runId)
  if (!earlier) throw runNotFound()
  const { status, completed_at: endedAt } = earlier
  if (status === 'queued' || status === 'running') throw conflict(`This run is ${status}: it has not ended.`)
  if (status === 'completed') throw conflict('This run is completed: there is nothing to resume. Fork it instead.')
  requireAgent(earlier)
  if (endedAt === null) throw conflict(waitSentence(earlier.pause_reason))
  if (earlier.has_open_children)
    throw conflict('A sub-run of this run has not ended. Wait for its end, or cancel it, and resume then.')
  if (earlier.continued_by !== null) {
    const newest = await newestOfChain(db, earlier.continued_by)
    throw conflict(`This run was resumed already; the run ${newest} continues it.`, { run_id: newest })
  }
  return earlier
}

const WAIT_SENTENCES: Partial<Record<PauseReason, string>> = {
  human: 'This run waits for a person: answer its question, or approve or reject its call, and it continues by itself.',
  budget: 'This run waits for tokens and continues by itself when there are tokens.',
  unavailable: 'This run waits for its provider and tries again by itself. POST …/try-now tries at once.',
}

const waitSentence = (reason: PauseReason | null): string =>
  (reason && WAIT_SENTENCES[reason]) ?? 'This run continues by itself when the project is no longer halted.'

function requireOutcome(reason: PauseReason | null, { outcome, result, call_id: callId }: ResumeInput): void {
  const isUnknown = reason === 'outcome_unknown'
  if (isUnknown && !outcome) {
    throw invalidRequest('Give the outcome of the call: outcome must be "done" or "not_done".')
  }
  if (outcome === 'not_done' && result !== undefined) {
    throw invalidRequest('result is the result of a call that was done: send it only with outcome "done".')
  }
  if (!isUnknown && (outcome || result !== undefined || callId !== undefined)) {
    throw invalidRequest('outcome, result and call_id are for runs that paused with outcome_unknown.')
  }
}
