import type { Db } from '../db/pool.ts'
import { callsOfRun } from '../journal/finished-calls.ts'
import { MusterError } from '../kernel/errors.ts'
import { fault } from '../kernel/fault.ts'
import type { Run } from '../kernel/run.ts'
import type { RunEvent } from '../kernel/run-event.ts'
import {
  askAboutOutcome,
  decidedOutcomes,
  type Outcome,
  type OutcomeDecision,
  type OutcomeTask,
} from '../tasks/outcome-tasks.ts'
import { notBegun, stopped } from './end.ts'
import { append, appendWritten, type OwnedRun } from './owned-run.ts'
import { isHeld, type PendingCall } from './pending-call.ts'
import { resumeRun } from './resume.ts'
import { continuationOf, IS_GIVEN_UP } from './run-row.ts'
import { toEvent } from './tool-result.ts'

class DecidedMeanwhile extends Error {}

/**
 * The outcomes of the calls are unknown: the run pauses, and in the same commit people are asked about each of them.
 * again: a person has just decided about a call that was asked about while the run waited for others.
 */
export async function leaveUndecided(owned: OwnedRun, calls: readonly PendingCall[]): Promise<'left' | 'again'> {
  const { run, state } = owned
  const end = stopped('outcome_unknown', state.text || null, { undecided: calls })
  try {
    await appendWritten(owned, async (tx) => {
      await lockInOrder(tx, [run.id, ...run.ancestors])
      const decided = await decidedOutcomes(tx, run.id)
      if (calls.some(({ id }) => decided.has(id))) throw new DecidedMeanwhile()
      await askAboutCalls(tx, owned, calls)
      return { events: [end.event], change: { set: end.set } }
    })
  } catch (error) {
    if (error instanceof DecidedMeanwhile) return 'again'
    throw error
  }
  await fault('final.after_commit')
  return 'left'
}

/** A question that was asked before stays as it is. */
export async function askAboutCalls(tx: Db, { run, agent }: OwnedRun, calls: readonly PendingCall[]): Promise<void> {
  if (calls.length === 0) return
  const of = {
    projectId: run.project_id,
    runId: run.id,
    agentId: agent.id,
    isOfSupervisor: run.agent_id === null,
    isOneOfMany: calls.length > 1,
  }
  const made = (await callsOfRun(tx, run.id)).filter((call) => call.is_finished)
  for (const { id: callId, name, args, key, announcedAt, cutOff } of calls) {
    await askAboutOutcome(tx, { ...of, callId, name, args, key, announcedAt, cutOff, made })
  }
}

/**
 * Takes the decisions about calls that were asked about while the run waited for others. Returns the calls that nobody
 * has decided about.
 */
export async function settleDecided(owned: OwnedRun, calls: readonly PendingCall[]): Promise<PendingCall[]> {
  if (calls.length === 0) return []
  const decided = await decidedOutcomes(owned.deps.pool, owned.run.id)
  const events = calls.flatMap((call) => {
    const decision = decided.get(call.id)
    return decision ? [settledByPerson(call, decision)] : []
  })
  if (events.length > 0) await append(owned, events)
  return calls.filter((call) => !decided.has(call.id))
}

/** The model gets the person's decision as the call's result; the call is not repeated. */
export function settledByPerson(call: PendingCall, { outcome, result }: OutcomeDecision): RunEvent {
  const isDone = outcome === 'done'
  const shown = isDone ? (result ?? { done: true }) : { error: 'This call was not carried out. A person checked it.' }
  const { kind, data } = toEvent(call, shown, !isDone)
  return { kind, data: { ...data, settled_by: 'person', args: call.args } }
}

/**
 * The calls of unknown outcome of a run that is cancelled because the time of the run above is up. Nobody would resume it,
 * so people are asked at once. A run that people cancel is asked about when they resume it.
 */
export async function callsCutOffLate({ run, state, control, deps }: OwnedRun): Promise<PendingCall[]> {
  if (control.interruption() !== 'cancel' || run.ancestors.length === 0) return []
  const safe = new Set(notBegun(state))
  const calls = [...state.pending.values()].filter(
    (call) => call.effect === 'unsafe' && !safe.has(call.id) && !isHeld(call),
  )
  if (calls.length === 0) return []
  const { rows } = await deps.pool.query<{ is_late: boolean }>(
    `select data ? 'is_late' as is_late from run_events
     where run_id = $1 and kind = 'run.cancel_requested' and origin_seq is null and not data ? 'run_id'
     order by seq desc limit 1`,
    [run.id],
  )
  return rows[0]?.is_late ? calls : []
}

/**
 * A person's word at the task lets the run go on, in a new run, if it was the last that was missing. Returns null if
 * nothing continues: other calls are undecided, the run or its agent is gone, or the run was a specialist's, whose
 * supervisor has gone on. The word is kept in any case.
 */
export async function decideOutcome(
  tx: Db,
  projectId: string,
  { run_id: runId, metadata }: OutcomeTask,
  outcome: Outcome,
): Promise<Run | null> {
  if (!(await isAwaited(tx, runId))) return null
  try {
    const decision = { outcome, call_id: String(metadata.call_id) }
    const run = await resumeRun(tx, projectId, runId, decision, { isRecorded: true })
    return run.id === runId ? null : run
  } catch (error) {
    if (error instanceof MusterError && error.status === 404) return null
    throw error
  }
}

/**
 * False for a run that still waits for others, which takes the decision when it wakes; for a specialist, whose supervisor
 * has continued; for a leaf that no flow run waits for, which takes the decision when its flow run is resumed; for an
 * attempt whose task was closed or passed on; and for a run that was continued without the decision.
 */
async function isAwaited(tx: Db, runId: string): Promise<boolean> {
  const { rows } = await tx.query<{ is_awaited: boolean }>(
    `select completed_at is not null and agent_id is not null and (${continuationOf('agent_runs.id')}) is null
       and not ${IS_GIVEN_UP} and (task_id is null or exists (
       select from tasks t where t.id = task_id and t.attempt_run_id = agent_runs.id and t.status = 'in-progress')) as is_awaited
     from agent_runs where id = $1`,
    [runId],
  )
  return rows[0]?.is_awaited ?? false
}

/** The event will lock these runs, too, in this order. */
export async function lockInOrder(tx: Db, runIds: readonly string[]): Promise<void> {
  await tx.query('select from agent_runs where id = any($1::uuid[]) order by id for update', [runIds])
}

/** Locks the run before its task, as a resume does, so that two people who decide at once do not block each other. */
export async function lockUndecided(tx: Db, runId: string): Promise<void> {
  await tx.query('select from agent_runs where id = $1 for update', [runId])
}
