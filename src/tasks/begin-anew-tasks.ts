// Questions to people whether work may begin anew although calls of it took effect. Each is closed only with a decision.
import { conflict, invalidRequest } from '../kernel/errors.ts'
import { idFrom } from '../kernel/id.ts'
import type { Task, TaskPatch } from '../kernel/task.ts'

export type BeginAnew = 'again' | 'stop'

/** One question for each piece of work and each run after which it would begin anew. */
export const beginAnewTaskId = (workId: string, runId: string): string => idFrom(`begin anew ${workId} ${runId}`)

/** Decides by the id, because a client cannot choose the id of a task; metadata can be written by anybody. */
export function isBeginAnewTask(task: Pick<Task, 'id' | 'kind' | 'metadata'>): boolean {
  const { task_id: taskId, leaf, run_id: runId } = task.metadata
  return task.kind === 'escalation' && task.id === beginAnewTaskId(String(leaf ?? taskId), String(runId))
}

/** The decision that the task was answered with; null while it is open. */
export function decisionOf({ status, result }: Pick<Task, 'status' | 'result'>): BeginAnew | null {
  return status === 'completed' && isDecision(result) ? result : null
}

/** Throws if the patch would close the task without a decision, or make another task of it. */
export function requireDecisionPatch(task: Pick<Task, 'result'>, patch: TaskPatch): void {
  if (patch.status === 'cancelled') {
    throw conflict('This task needs a decision: complete it with the result "again" or "stop".')
  }
  if (patch.metadata !== undefined) throw conflict('The metadata of this task names its calls and cannot be changed.')
  const result = patch.result === undefined ? task.result : patch.result
  const mustDecide = patch.status === 'completed' || patch.result !== undefined
  if (mustDecide && !isDecision(result)) throw invalidRequest('result must be "again" or "stop".')
}

const isDecision = (result: unknown): result is BeginAnew => result === 'again' || result === 'stop'
