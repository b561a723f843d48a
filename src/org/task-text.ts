import { anyOf } from '../db/lists.ts'
import type { Db, PreparedSql } from '../db/pool.ts'
import type { MadeCall } from '../journal/finished-calls.ts'
import { CONTINUE } from '../kernel/continue-phrase.ts'
import { cutText } from '../kernel/cut-text.ts'
import type { Task } from '../kernel/task.ts'
import { effectsParagraph } from '../tasks/made-calls-text.ts'
import type { WorkTask } from './work-row.ts'

/** A subtask or dependency, with the fields that other tasks' texts mention. */
export interface TaskOutcome {
  task_id: string
  title: string
  status: Task['status']
  result: unknown
}

const MOST_CHARACTERS = 20_000
/** The most characters of earlier results in a task's text, all results together. */
const MOST_OF_ALL = 400_000

export function taskText(
  task: Pick<WorkTask, 'title' | 'description' | 'advice' | 'error_message'>,
  outcomes: {
    dependencies: readonly TaskOutcome[]
    subtasks: readonly TaskOutcome[]
    /** The calls of earlier attempts, whose history this attempt does not have. */
    calls: readonly MadeCall[]
  },
): string {
  const parts = [`Task: ${task.title}`, task.description]
  if (outcomes.dependencies.length > 0)
    parts.push(`Results that this task builds on:\n${listed(outcomes.dependencies)}`)
  if (outcomes.subtasks.length > 0) {
    parts.push(
      `The task was split, and this is what became of its parts:\n${listed(outcomes.subtasks)}`,
      'Not every part was completed. Complete the task with what there is, or say what is missing.',
    )
  }
  if (outcomes.calls.length > 0) {
    parts.push(`${effectsParagraph(outcomes.calls)}\nDo not make a call again whose effect is there already.`)
  }
  if (task.advice.length > 0) parts.push(adviceText(task.advice))
  if (task.error_message !== null) parts.push(failureText(task.error_message))
  return parts.filter((part) => part !== '').join('\n\n')
}

const adviceText = (advice: WorkTask['advice']): string =>
  `You were stuck on this task and asked for help. This was answered:\n${advice.map(({ from, text }) => `- ${from}: ${text}`).join('\n')}`

const failureText = (error: string): string => `The last attempt failed: ${error}`

/** The words with which a continued attempt begins; null if there is nothing new to say. */
export function continuationText(task: Pick<WorkTask, 'advice' | 'error_message' | 'attempts'>): string | null {
  // Help that has just come sets the attempts back; earlier help is a part of the history.
  const help = task.attempts === 0 ? task.advice.at(-1) : undefined
  const parts = [
    ...(help ? [adviceText([help])] : []),
    ...(task.error_message === null ? [] : [failureText(task.error_message)]),
  ]
  if (parts.length === 0) return null
  return [`${CONTINUE} Calls that have a result were made and stand.`, ...parts].join('\n\n')
}

const listed = (outcomes: readonly TaskOutcome[]): string =>
  outcomes.map(({ title, status, result }) => `- ${title} (${status}): ${resultText(result)}`).join('\n')

/** A result in words, cut if it is long. */
export function resultText(result: unknown): string {
  if (result === null || result === undefined) return 'no result'
  const text = typeof result === 'string' ? result : JSON.stringify(result)
  return shortForAgents(text)
}

/** At most this many characters of the text, and a mark at the cut. */
export const shortForAgents = (text: string): string =>
  text.length <= MOST_CHARACTERS ? text : `${cutText(text, MOST_CHARACTERS)} [cut]`

/** A result that is stored in more bytes than this and could only be told in part is not read at all. */
const READ_AT_ALL = 8_192
/** With more subtasks than this the lengths are not added up: each result has an equal share. */
const FEW_PARTS = 20

/** SQL for the result of a task t, or its first `most` characters. */
const inShort = (most: string): string => `
  case when t.result is null then null
    when pg_column_size(t.result) > greatest(${READ_AT_ALL}, ${most})
      then '"[The result is too long to be told here: see the task.]"'::jsonb
    when length(t.result #>> '{}') <= ${most} then t.result
    else to_jsonb(left(t.result #>> '{}', (${most})::int) || ' [cut]') end`

/** SQL for the subtasks of parents: the subtasks of the last plan, and those that people made. */
const PARTS = `tasks t join tasks p on p.id = t.parent_task_id and (t.run_id is null or t.run_id = p.attempt_run_id)`

const SUBTASKS: PreparedSql = {
  name: 'subtasks_in_short',
  text: `
    select t.parent_task_id, t.id as task_id, t.title, t.status, ${inShort('t.most')} as result
    from (
      select t.*, case when t.parts <= ${FEW_PARTS} and sum(t.length) over (partition by t.parent_task_id) <= $2::int
        then $3::int else least($3::int, greatest(100, $2::int / t.parts)) end as most
      from (
        select t.*, case when t.parts <= ${FEW_PARTS} then length(t.result #>> '{}') end as length
        from (
          select t.*, count(*) over (partition by t.parent_task_id) as parts
          from ${PARTS} where t.parent_task_id = ${anyOf(1)}
        ) t
      ) t
    ) t order by t.created_at, t.id`,
}

/** The outcomes of subtasks by parent, in the order of creation. Long results, or results of many, are cut. */
export async function subtasksOf(
  db: Db,
  parentIds: readonly string[],
  { ofAll = MOST_OF_ALL, ofOne = MOST_CHARACTERS } = {},
): Promise<Map<string, TaskOutcome[]>> {
  if (parentIds.length === 0) return new Map()
  const { rows } = await db.query<TaskOutcome & { parent_task_id: string }>(SUBTASKS, [parentIds, ofAll, ofOne])
  const groups = Map.groupBy(rows, (row) => row.parent_task_id)
  return new Map(Array.from(groups, ([id, those]) => [id, those.map(({ parent_task_id: _, ...outcome }) => outcome)]))
}

const OPEN: PreparedSql = {
  name: 'parents_with_open_parts',
  text: `select distinct t.parent_task_id as id from ${PARTS}
    where t.parent_task_id = ${anyOf(1)} and t.status in ('pending', 'in-progress', 'blocked')`,
}

/** The parents that have an open subtask. */
export async function withOpenParts(db: Db, parentIds: readonly string[]): Promise<Set<string>> {
  if (parentIds.length === 0) return new Set()
  const { rows } = await db.query<{ id: string }>(OPEN, [parentIds])
  return new Set(rows.map((row) => row.id))
}

export async function outcomesOf(db: Db, taskIds: readonly string[]): Promise<TaskOutcome[]> {
  if (taskIds.length === 0) return []
  const { rows } = await db.query<TaskOutcome>(
    `select t.id as task_id, t.title, t.status, ${inShort(`${MOST_CHARACTERS}`)} as result
     from tasks t where t.id = any($1) order by t.created_at, t.id`,
    [taskIds],
  )
  return rows
}
