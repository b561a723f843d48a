// Suggestions: changes that an agent may not make by itself. People see and decide about the exact change.
import { recordAudit } from '../audit/record.ts'
import type { Db, Pool } from '../db/pool.ts'
import { inTransaction } from '../db/transaction.ts'
import { conflict, MusterError } from '../kernel/errors.ts'
import { fault } from '../kernel/fault.ts'
import type { Actor } from '../kernel/principal.ts'
import { isResolved, objectChanges, type Task } from '../kernel/task.ts'
import { byAgent } from '../objects/author.ts'
import { relate } from '../objects/relationships.ts'
import { changeOf } from '../objects/suggested-change.ts'
import type { ObjectWriter } from '../objects/write-objects.ts'
import {
  type ApprovalTools,
  approveCall,
  isCallTask,
  markStale,
  rejectCall,
  type SuggestionDecision,
} from './decide-call.ts'
import { onlyTask, TASK_COLUMNS, type TaskRow } from './task-row.ts'
import { getTask } from './tasks.ts'

interface Approved {
  task: Task
  /** The number of runs that the changes started, or that the decision woke. */
  started: number
}

/** The parts with which an approved suggestion takes effect. */
export interface ApprovalParts {
  pool: Pool
  writer: ObjectWriter
  tools: ApprovalTools
}

/**
 * Applies the suggestion once, in the agent's name; the call of a suggested call is made by its run. If the graph has
 * moved on, the task says so instead.
 */
export async function approveSuggestion(
  { pool, writer, tools }: ApprovalParts,
  { projectId, taskId, actor }: SuggestionDecision,
): Promise<Approved> {
  const read = await getTask(pool, projectId, taskId)
  if (isCallTask(read)) {
    return { task: await approveCall(pool, tools, read, { projectId, taskId, actor }), started: 1 }
  }
  const outcome = await inTransaction(pool, async (tx): Promise<Approved | MusterError> => {
    const { task, depth } = await lockSuggestion(tx, projectId, taskId)
    await tx.query('savepoint before_changes')
    const applied = await apply(tx, writer, { projectId, task, depth, actor })
    if ('stale' in applied) {
      await tx.query('rollback to savepoint before_changes')
      await markStale(tx, taskId, applied.stale)
      return conflict(`${applied.stale} Reject this suggestion, or let the agent make a new one.`)
    }
    await fault('approval.after_decision_before_apply')
    const approved = await resolve(tx, task, { status: 'completed', result: { applied: applied.changes } })
    await note(tx, 'task.approve', actor, projectId, taskId)
    return { task: approved, started: applied.started }
  })
  if (outcome instanceof Error) throw outcome
  return outcome
}

export interface Verdict {
  id: string
  ok: boolean
  error?: { code: string; message: string }
}

/** Approves each suggestion separately. Returns a verdict for every id, in the order of the ids. */
export async function approveMany(
  parts: ApprovalParts,
  ids: readonly string[],
  { projectId, actor }: { projectId: string; actor: Actor },
): Promise<{ results: Verdict[]; started: number }> {
  const decided = new Map<string, Omit<Verdict, 'id'>>()
  const results: Verdict[] = []
  let started = 0
  for (const id of ids) {
    const taskId = id.toLowerCase()
    const verdict = decided.get(taskId) ?? (await decide(taskId))
    decided.set(taskId, verdict)
    results.push({ id, ...verdict })
  }
  return { results, started }

  async function decide(taskId: string): Promise<Omit<Verdict, 'id'>> {
    try {
      started += (await approveSuggestion(parts, { projectId, taskId, actor })).started
      return { ok: true }
    } catch (error) {
      if (!(error instanceof MusterError)) throw error
      return { ok: false, error: { code: error.code, message: error.message } }
    }
  }
}

export async function rejectSuggestion(
  pool: Pool,
  { projectId, taskId, actor, reason }: SuggestionDecision & { reason: string | undefined },
): Promise<Task> {
  const read = await getTask(pool, projectId, taskId)
  if (isCallTask(read)) return rejectCall(pool, read, { projectId, taskId, actor }, reason)
  return inTransaction(pool, async (tx) => {
    const { task } = await lockSuggestion(tx, projectId, taskId)
    const rejected = await resolve(tx, task, { status: 'rejected', result: reason === undefined ? null : { reason } })
    await note(tx, 'task.reject', actor, projectId, taskId)
    return rejected
  })
}

async function lockSuggestion(tx: Db, projectId: string, taskId: string): Promise<{ task: Task; depth: number }> {
  const { rows } = await tx.query<TaskRow & { chain_depth: number }>(
    `select ${TASK_COLUMNS}, chain_depth from tasks where id = $1 and project_id = $2 for update`,
    [taskId, projectId],
  )
  const task = onlyTask(rows)
  if (task.kind !== 'suggestion')
    throw conflict(`This task is of the kind ${task.kind}; only a suggestion can be approved or rejected.`)
  if (isResolved(task.status)) throw conflict(`This suggestion is already ${task.status}.`)
  return { task, depth: rows[0]?.chain_depth ?? 0 }
}

type Applied = { changes: Record<string, unknown>[]; started: number } | { stale: string }

async function apply(
  tx: Db,
  writer: ObjectWriter,
  { projectId, task, depth, actor }: { projectId: string; task: Task; depth: number; actor: Actor },
): Promise<Applied> {
  const author = byAgent(task.created_by.id ?? '', { runId: task.run_id, depth, approver: actor })
  const changes: Record<string, unknown>[] = []
  let started = 0
  for (const suggested of objectChanges(task)) {
    const change = changeOf(suggested)
    if (change.op === 'relate') {
      const outcome = await relate(tx, { projectId, change, author })
      if (outcome.kind === 'missing') return { stale: 'An object that was to be related is gone.' }
      if (outcome.kind === 'taken') return { stale: 'These objects have been related meanwhile.' }
      changes.push({ op: 'relate', relationship_id: outcome.relationship.id })
      continue
    }
    const outcome = await writer.writeIn(tx, { projectId, change, author })
    if (outcome.kind === 'missing') return { stale: 'The object was deleted meanwhile.' }
    if (outcome.kind === 'moved') {
      const from = suggested.base_version
      return { stale: `The object has moved from version ${from} to ${outcome.version} since this was suggested.` }
    }
    if (outcome.kind === 'taken') return { stale: 'There is an object of this type and key by now.' }
    if (outcome.kind === 'too_large') return { stale: 'The object would be larger than objects may be.' }
    changes.push({ op: change.op, object_id: outcome.object.id, version: outcome.object.version })
    if (outcome.kind === 'written') started += outcome.started
  }
  return { changes, started }
}

async function resolve(
  tx: Db,
  { id }: Task,
  { status, result }: { status: 'completed' | 'rejected'; result: unknown },
): Promise<Task> {
  // An applied suggestion is not stale, even if an earlier approval failed.
  const { rows } = await tx.query<TaskRow>(
    `update tasks set status = $2, result = $3, completed_at = muster.now(),
       metadata = case when $2 = 'completed' then metadata - 'stale' - 'stale_reason' else metadata end
     where id = $1 returning ${TASK_COLUMNS}`,
    [id, status, result === null ? null : JSON.stringify(result)],
  )
  return onlyTask(rows)
}

async function note(tx: Db, action: string, actor: Actor, projectId: string, taskId: string): Promise<void> {
  await recordAudit(tx, { action, actor, projectId, targetType: 'task', targetId: taskId })
}
