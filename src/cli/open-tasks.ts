// The inbox: tasks that wait for people.
import { suggestedCall } from '../kernel/task.ts'
import { readList, type TaskAnswer, taskAnswer } from './answers.ts'
import type { CommandContext } from './command.ts'
import { findOne } from './find-one.ts'
import { isNotFound } from './find-run.ts'
import { isWholeId } from './short-id.ts'
import { jsonText } from './visible-text.ts'
import type { Workplace } from './workplace.ts'

export interface OpenTask {
  task: TaskAnswer
  /** The name of the agent that made it, or "people". */
  by: string
}

const KINDS = ['escalation', 'suggestion', 'work'] as const
export type OpenKind = (typeof KINDS)[number]

/** Of each kind the newest are looked at. */
const MOST_TASKS = 1_000

/** Questions first, then suggestions, then work; each the oldest first. */
export async function readOpenTasks(
  { client }: CommandContext,
  workplace: Workplace,
  kinds: readonly OpenKind[] = KINDS,
): Promise<{ tasks: OpenTask[]; isCut: boolean }> {
  const query = (kind: string) => ({ kind, status: 'pending' })
  const lists = await Promise.all(
    kinds.map((kind) =>
      readList(client, workplace.path('tasks'), taskAnswer, { query: query(kind), most: MOST_TASKS }),
    ),
  )
  // A task with an assignee is for an agent to do.
  const forPeople = lists.flatMap(({ items }) => items.reverse().filter((task) => task.assigned_to === null))
  const tasks = await Promise.all(forPeople.map(async (task) => ({ task, by: await creatorName(workplace, task) })))
  return { tasks, isCut: lists.some(({ isCut }) => isCut) }
}

async function creatorName(workplace: Workplace, { created_by: { type, id } }: TaskAnswer): Promise<string> {
  return type === 'agent' && id !== null ? workplace.agentName(id) : 'people'
}

/** A call is named with its arguments, because the title of its task may be short. */
export function nameOfTask(task: TaskAnswer): string {
  const call = suggestedCall(task)
  return call === null ? task.title : `${call.tool} ${jsonText(call.args)}`
}

/** A task by its id, the first letters of it, its title, words of its title, or the name of the agent that made it. */
export async function findTask(
  context: CommandContext,
  workplace: Workplace,
  reference: string,
  kinds: readonly OpenKind[],
): Promise<TaskAnswer> {
  const { tasks } = await readOpenTasks(context, workplace, kinds)
  const candidates = tasks.map(({ task, by }) => ({
    thing: task,
    id: task.id,
    names: [task.title, by],
    text: `${task.title} ${nameOfTask(task)}`,
    label: `${by}: ${nameOfTask(task)}`,
  }))
  const what = kinds.includes('suggestion') ? 'open suggestion' : 'open question'
  try {
    return findOne(what, reference, candidates)
  } catch (error) {
    // The server says what became of a task that is no longer open.
    if (!isNotFound(error) || !isWholeId(reference)) throw error
    return context.client.ask(workplace.path(`tasks/${reference.toLowerCase()}`), taskAnswer)
  }
}

/** A task about a call whose outcome nobody knows takes no other answers than these. */
export const isAboutOutcome = ({ metadata }: Pick<TaskAnswer, 'metadata'>): boolean =>
  metadata.kind === 'outcome_unknown'

/** A task that asks whether work may begin anew takes no other answers than again and stop. */
export const isAboutBeginningAnew = ({ metadata }: Pick<TaskAnswer, 'metadata'>): boolean =>
  metadata.kind === 'begin_anew'

/** The commands that answer a question. */
export function answersTo(task: Pick<TaskAnswer, 'metadata'>, id: string): string[] {
  if (isAboutBeginningAnew(task)) return [`muster answer ${id} again`, `muster answer ${id} stop`]
  if (isAboutOutcome(task)) return [`muster answer ${id} done`, `muster answer ${id} not_done`]
  return [`muster answer ${id} "…"`]
}

export const exhaustedAgent = ({ metadata }: TaskAnswer): string | null =>
  typeof metadata.exhaustedAgentId === 'string' ? metadata.exhaustedAgentId : null

/** The words behind a title that is the first line of its description. */
export function restOfDescription({ title, description }: Pick<TaskAnswer, 'title' | 'description'>): string {
  const text = description.trim()
  return text.startsWith(title) ? text.slice(title.length).trim() : text
}
