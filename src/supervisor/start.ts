// A request starts a supervisor's run. A person's answer, or a request to go on, continues the run.
import type { Db } from '../db/pool.ts'
import { insertRun } from '../journal/insert-run.ts'
import type { Journal } from '../journal/journal.ts'
import { wakeWaiting } from '../journal/wake.ts'
import { conflict, invalidRequest, runNotFound } from '../kernel/errors.ts'
import { isId, newId } from '../kernel/id.ts'
import type { Actor } from '../kernel/principal.ts'
import type { Run } from '../kernel/run.ts'
import { isSupervisor, type SupervisorPart, type SystemPart } from '../kernel/supervisor.ts'
import { getRun } from '../runs/read-runs.ts'
import { updateTaskIn } from '../tasks/update-task.ts'
import { asConfigured, type Choice, chooseSystem } from './systems.ts'

export interface SupervisorTask {
  task: string
  contextId: string | null
  metadata: Record<string, unknown>
  trigger?: Readonly<Record<string, unknown>>
}

export type SupervisorStart = SupervisorTask & Choice

export async function startSupervisor(db: Db, projectId: string, start: SupervisorStart): Promise<Run> {
  const system = asConfigured(await chooseSystem(db, projectId, start))
  return getRun(db, projectId, await startSystem(db, projectId, system, start))
}

/** The same as `startSupervisor`, with a stored configuration of a variant. Returns the id of the run. */
export async function startSystem(
  db: Db,
  projectId: string,
  { variant, config }: Pick<SupervisorPart, 'variant' | 'config'>,
  start: SupervisorTask,
): Promise<string> {
  const part: SupervisorPart = {
    variant,
    node: 'supervisor',
    config,
    context: { context_id: start.contextId, metadata: start.metadata },
  }
  const id = newId()
  await insertRun(db, {
    id,
    projectId,
    agentId: null,
    part,
    trigger: { type: 'supervisor', system_variant: variant, node: 'supervisor', ...start.trigger },
    input: start.task,
    maxSteps: null,
    timeoutMs: null,
  })
  return id
}

/** Completes a question to people, as the inbox does. */
export type AnswerTask = (tx: Db, projectId: string, taskId: string, answer: string) => Promise<void>

export interface Continuation {
  journal: Journal
  answer: AnswerTask
}

/**
 * Continues a run that waits for a person, or whose model was unavailable, with the person's answer. Every other run is
 * refused. `after` is the seq of the last event before the answer.
 */
export async function continueSupervisor(
  tx: Db,
  { journal, answer }: Continuation,
  {
    projectId,
    runId,
    said,
    variant,
  }: { projectId: string; runId: string; said: string | null; variant?: string | null },
): Promise<{ run: Run; after: number }> {
  const { rows } = isId(runId)
    ? await tx.query<{
        part: SystemPart | null
        status: string
        pause_reason: string | null
        completed_at: Date | null
        is_woken: boolean
        last_seq: number
      }>(
        `select part, status, pause_reason, completed_at, ready_at is not null as is_woken, last_seq from agent_runs
         where id = $1 and project_id = $2 for update`,
        [runId, projectId],
      )
    : { rows: [] }
  const row = rows[0]
  if (!row || !isSupervisor(row.part)) throw runNotFound()
  if (variant && variant !== row.part.variant) throw conflict(`This run keeps its variant, ${row.part.variant}.`)
  const reason = row.status === 'paused' && row.completed_at === null ? row.pause_reason : null
  if (reason === 'human') {
    if (said === null) throw invalidRequest('input: the run waits for an answer, which is input.task.')
    await answer(tx, projectId, await openQuestion(tx, runId), said)
  } else if (reason === 'unavailable') {
    if (row.is_woken) throw conflict('This run was continued already.')
    const event = { kind: 'supervisor.answered', data: { task_id: null, answer: said ?? '', summaries: null } }
    const set = { error_code: null, error_message: null }
    await journal.appendIn(tx, { runId, fence: null, events: [event], change: { set }, ancestors: [] })
    await wakeWaiting(tx, runId, 'human')
  } else throw conflict('Only a run that was escalated, or whose model was unavailable, can be continued.')
  return { run: await getRun(tx, projectId, runId), after: row.last_seq }
}

/**
 * The reason why the run waits for a person's word: its question, or its model, which was unavailable. Null if it does
 * not wait. A run that waits is locked, so that no second word is taken.
 */
export async function awaitedWord(tx: Db, projectId: string, runId: string): Promise<'human' | 'unavailable' | null> {
  const waits = `select pause_reason from agent_runs where id = $1 and project_id = $2 and status = 'paused'
    and pause_reason in ('human', 'unavailable') and completed_at is null and ready_at is null`
  let awaited: 'human' | 'unavailable' | null = null
  for (const lock of ['', 'for update']) {
    const { rows } = await tx.query<{ pause_reason: 'human' | 'unavailable' }>(`${waits} ${lock}`, [runId, projectId])
    awaited = rows[0]?.pause_reason ?? null
    if (awaited === null) return null
  }
  return awaited
}

async function openQuestion(tx: Db, runId: string): Promise<string> {
  const { rows } = await tx.query<{ id: string }>(
    `select id from tasks where run_id = $1 and kind = 'escalation' and status in ('pending', 'in-progress')
     order by created_at desc limit 1`,
    [runId],
  )
  if (!rows[0]) throw conflict('The question of this run was answered already.')
  return rows[0].id
}

/** Answers as a person does in the inbox: the commit that stores the answer also wakes the run. */
export const answerAs =
  (actor: Actor): AnswerTask =>
  async (tx, projectId, taskId, answer) => {
    await updateTaskIn(
      tx,
      projectId,
      taskId,
      { status: 'completed', result: answer },
      {
        actor,
        onChanged: async (_, __, task) => {
          if (task.run_id !== null) await wakeWaiting(tx, task.run_id, 'human')
        },
        lockRun: async () => {},
      },
    )
  }
