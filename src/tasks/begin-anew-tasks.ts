// Questions to people whether work may begin anew although calls of it took effect. Each is closed only with a decision.
import type { Db } from '../db/pool.ts'
import { cleanText } from '../journal/clean-json.ts'
import type { MadeCall } from '../journal/finished-calls.ts'
import { cutText } from '../kernel/cut-text.ts'
import { conflict, invalidRequest } from '../kernel/errors.ts'
import { idFrom } from '../kernel/id.ts'
import { type Creator, MAX_TITLE, type Task, type TaskPatch } from '../kernel/task.ts'
import { asMetadata, linesOf } from './made-calls-text.ts'

export type BeginAnew = 'again' | 'stop'

export interface AnewQuestion {
  projectId: string
  /** The agent that would begin anew. */
  agentId: string | null
  /** The id of the task, or the scope of the leaf. */
  workId: string
  /** The work in words: `the task "Refund A-1"`. */
  work: string
  /** The newest run of the work, whose history cannot be continued. */
  earlierRunId: string
  /** The run that is held until the answer, if there is one. */
  heldRunId?: string
  metadata: Readonly<Record<string, unknown>>
  calls: readonly MadeCall[]
}

/** One question for each piece of work and each run after which it would begin anew. */
export const beginAnewTaskId = (workId: string, runId: string): string => idFrom(`begin anew ${workId} ${runId}`)

export const STOPPED = 'A person decided that the work does not begin anew.'

/** The decision about this very fresh start, if a person has given one, and the flow run in which it was given. */
export async function decisionAbout(
  tx: Db,
  workId: string,
  runId: string,
): Promise<{ is: BeginAnew; flowRunId: unknown } | null> {
  const { rows } = await tx.query<Pick<Task, 'status' | 'result' | 'metadata'>>(
    'select status, result, metadata from tasks where id = $1',
    [beginAnewTaskId(workId, runId)],
  )
  const is = rows[0] ? anewDecision(rows[0]) : null
  return is === null ? null : { is, flowRunId: rows[0]?.metadata.flow_run_id }
}

/**
 * Called in the transaction that makes the work wait. A question that was withdrawn, or answered for another agent, is
 * open again.
 */
export async function askBeginAnew(tx: Db, question: AnewQuestion): Promise<void> {
  const { projectId, agentId, workId, work, earlierRunId, heldRunId, calls } = question
  const creator: Creator = { type: 'agent', id: agentId }
  const metadata = {
    ...question.metadata,
    kind: 'begin_anew',
    run_id: earlierRunId,
    work: workId,
    calls: asMetadata(calls),
  }
  await tx.query(
    `insert into tasks (id, project_id, kind, title, description, priority, created_by, run_id, metadata)
     values ($1, $2, 'escalation', $3, $4, 'high', $5, $6, $7)
     on conflict (id) do update set status = 'pending', result = null, completed_at = null, created_by = excluded.created_by,
       description = excluded.description, run_id = excluded.run_id, metadata = excluded.metadata`,
    [
      beginAnewTaskId(workId, earlierRunId),
      projectId,
      cleanText(cutText(`Start over on ${work}?`, MAX_TITLE, '…')),
      cleanText(descriptionOf(work, calls)),
      JSON.stringify(creator),
      heldRunId ?? null,
      cleanText(JSON.stringify(metadata)),
    ],
  )
}

function descriptionOf(work: string, calls: readonly MadeCall[]): string {
  return [
    `The work on ${work} cannot be continued and would start over. Its earlier attempts have made these calls, which may`,
    'then be made a second time:',
    '',
    linesOf(calls),
    '',
    'Complete this task with the result "again", and the work starts over and is told about these calls; or with "stop", and',
    'it stays undone.',
  ].join('\n')
}

/** Decides by the id, because a client cannot choose the id of a task; metadata can be written by anybody. */
export function isBeginAnewTask(task: Pick<Task, 'id' | 'kind' | 'metadata'>): boolean {
  const { work, run_id: runId } = task.metadata
  return task.kind === 'escalation' && task.id === beginAnewTaskId(String(work), String(runId))
}

/** The decision that the task was answered with; null while it is open. */
export function anewDecision({ status, result }: Pick<Task, 'status' | 'result'>): BeginAnew | null {
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
