// These tasks ask people about the outcome of a tool call that was cut off before it answered: the call must not be
// repeated unseen. A task is made when its run pauses, one for each call, and closed only with an outcome.

import type { Db } from '../db/pool.ts'
import { cleanText } from '../journal/clean-json.ts'
import type { MadeCall } from '../journal/finished-calls.ts'
import { cutText } from '../kernel/cut-text.ts'
import { conflict, invalidRequest } from '../kernel/errors.ts'
import { idFrom } from '../kernel/id.ts'
import type { CutOff } from '../kernel/run-event.ts'
import { type Creator, MAX_TITLE, type Task, type TaskPatch } from '../kernel/task.ts'
import { effectsParagraph } from './made-calls-text.ts'

export interface UndecidedCall {
  projectId: string
  runId: string
  agentId: string
  /** True for the run of a specialist: its supervisor goes on without the run. */
  isOfSupervisor: boolean
  callId: string
  name: string
  args: unknown
  key: string
  /** The time of the announcement in milliseconds. */
  announcedAt: number
  /** Null if the process of the call died or left. */
  cutOff: CutOff | null
  /** True if the run waits for decisions about other calls, too. */
  isOneOfMany: boolean
  /** The calls of the run that have a result. */
  made: readonly MadeCall[]
}

export interface OutcomeDecision {
  outcome: Outcome
  /** The result of a call that was done, for the model. */
  result: unknown
}

export type Outcome = 'done' | 'not_done'

const KIND = 'outcome_unknown'
const MAX_CHARACTERS = 20_000

/** Called in the transaction that pauses the run, so that no run pauses without its task. */
export async function askAboutOutcome(tx: Db, call: UndecidedCall): Promise<void> {
  const { projectId, runId, agentId, callId, name } = call
  const creator: Creator = { type: 'agent', id: agentId }
  await tx.query(
    `insert into tasks (id, project_id, kind, title, description, priority, created_by, run_id, metadata)
     values ($1, $2, 'escalation', $3, $4, 'high', $5, $6, $7) on conflict (id) do nothing`,
    [
      taskIdOf(runId, callId),
      projectId,
      cleanText(cutText(`Did the call of ${name} take effect?`, MAX_TITLE)),
      cleanText(descriptionOf(call)),
      JSON.stringify(creator),
      runId,
      JSON.stringify({ run_id: runId, call_id: callId, kind: KIND }),
    ],
  )
}

/** A decision that was given at the run completes the task of the call, which keeps the decision. */
export async function closeOutcomeTask(
  tx: Db,
  runId: string,
  callId: string,
  decision: OutcomeDecision,
): Promise<void> {
  const { outcome, result } = decision
  await tx.query(
    `update tasks set status = 'completed', result = $2, completed_at = muster.now(), metadata = metadata || $3::jsonb
     where id = $1 and status in ('pending', 'in-progress')`,
    [taskIdOf(runId, callId), JSON.stringify(outcome), JSON.stringify(result === null ? {} : { call_result: result })],
  )
}

/** The questions leave the inbox: the calls are asked about anew, or nobody continues the runs. */
export async function withdrawOutcomeTasks(tx: Db, runIds: readonly string[]): Promise<void> {
  await tx.query(
    `update tasks set status = 'cancelled', completed_at = muster.now()
     where run_id = any($1) and kind = 'escalation' and metadata->>'kind' = $2 and status in ('pending', 'in-progress')`,
    [runIds, KIND],
  )
}

/** The decisions about calls of the run so far, by call. */
export async function decidedOutcomes(tx: Db, runId: string): Promise<Map<string, OutcomeDecision>> {
  const { rows } = await tx.query<{ call_id: string; outcome: unknown; result: unknown }>(
    `select metadata->>'call_id' as call_id, result as outcome, metadata->'call_result' as result from tasks
     where run_id = $1 and kind = 'escalation' and metadata->>'kind' = $2 and status = 'completed'`,
    [runId, KIND],
  )
  return new Map(
    rows.flatMap(({ call_id: id, outcome, result }) => (isOutcome(outcome) ? [[id, { outcome, result }]] : [])),
  )
}

/** Decides by the id, because a client cannot choose the id of a task; metadata can be written by anybody. */
export function isOutcomeTask(task: Pick<Task, 'id' | 'kind' | 'run_id' | 'metadata'>): task is OutcomeTask {
  const { call_id: callId } = task.metadata
  return task.kind === 'escalation' && task.run_id !== null && task.id === taskIdOf(task.run_id, String(callId))
}

export type OutcomeTask = Task & { run_id: string }

/** The outcome that the task was answered with; null while it is open. */
export function outcomeOf({ status, result }: Pick<Task, 'status' | 'result'>): Outcome | null {
  return status === 'completed' && isOutcome(result) ? result : null
}

/** Throws if the patch would close the task without an outcome of the call, or make another task of it. */
export function requireOutcomePatch(task: OutcomeTask, patch: TaskPatch): void {
  if (patch.status === 'cancelled') {
    throw conflict('This task needs the outcome of the call: complete it with the result "done" or "not_done".')
  }
  if (patch.metadata !== undefined) throw conflict('The metadata of this task names its call and cannot be changed.')
  const result = patch.result === undefined ? task.result : patch.result
  const mustSay = patch.status === 'completed' || patch.result !== undefined
  if (mustSay && !isOutcome(result)) throw invalidRequest('result must be "done" or "not_done".')
}

const isOutcome = (result: unknown): result is Outcome => result === 'done' || result === 'not_done'

const taskIdOf = (runId: string, callId: string): string => idFrom(`${runId}:outcome:${callId}`)

function descriptionOf(call: UndecidedCall): string {
  const { name, args, key, announcedAt, cutOff, runId, isOfSupervisor, isOneOfMany, made } = call
  const text = JSON.stringify(args, null, 2) ?? ''
  const effects = effectsParagraph(made)
  return [
    `${whyUnknown(name, cutOff)} The call may have taken effect or not, and it is not repeated.`,
    '',
    `${name} was called at ${cutOff?.started_at ?? new Date(announcedAt).toISOString()} with the idempotency key ${key} and these arguments:`,
    cutText(text, MAX_CHARACTERS, '\n[cut]'),
    ...(effects === '' ? [] : ['', effects]),
    '',
    'Check whether the call took effect, then complete this task with the result "done" or "not_done".',
    isOfSupervisor
      ? `The run ${runId} was a specialist's; its supervisor was told that the outcome is unknown, and continues.`
      : `The run ${runId} continues with your answer${isOneOfMany ? ' when its other undecided calls are decided, too' : ''}.`,
  ].join('\n')
}

function whyUnknown(name: string, cutOff: CutOff | null): string {
  switch (cutOff?.reason) {
    case undefined:
    case 'shutdown':
      return `The process that called ${name} stopped before the call had answered.`
    case 'timeout':
      return `The call of ${name} did not answer within ${seconds(cutOff?.duration)} and was given up.`
    case 'deadline':
      return `The time of the run was up ${seconds(cutOff?.duration)} after ${name} was called, before the call had answered.`
    case 'cancel':
      return `The run was cancelled before its call of ${name} had answered.`
    case 'connection':
      return `The connection broke after the request of ${name} was sent: ${cutText(cutOff?.message ?? '', 500)}`
  }
}

const seconds = (ms = 0): string => `${new Intl.NumberFormat('en', { maximumFractionDigits: 1 }).format(ms / 1_000)} s`
