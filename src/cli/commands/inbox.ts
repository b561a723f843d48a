// The tasks that wait for people, each with the commands that settle it.
import { isRecord } from '../../kernel/is-record.ts'
import { objectChanges, suggestedCall } from '../../kernel/task.ts'
import type { TaskAnswer } from '../answers.ts'
import type { CommandContext, Execute } from '../command.ts'
import { ageText } from '../durations.ts'
import { exitCodes } from '../exit-codes.ts'
import {
  answersTo,
  exhaustedAgent,
  nameOfTask,
  type OpenTask,
  readOpenTasks,
  restOfDescription,
} from '../open-tasks.ts'
import { type StyledText, styled } from '../screen.ts'
import { shortId, shortIdsOf } from '../short-id.ts'
import { printTable } from '../table.ts'
import { jsonText, visibleLine, visibleText } from '../visible-text.ts'
import { openWorkplace, type Workplace } from '../workplace.ts'

export const inboxCommand: Execute = async (context) => {
  const { out, notes, isJson, now } = context
  const workplace = await openWorkplace(context)
  const { tasks, isCut } = await readOpenTasks(context, workplace)
  if (isJson) out.print(jsonText({ items: tasks.map(({ task }) => task) }))
  else if (out.isTerminal) printCards(context, workplace, tasks)
  else {
    printTable(
      out,
      [
        { title: 'TASK', cell: ({ task }) => ({ text: task.id }) },
        { title: 'KIND', cell: ({ task }) => KINDS[task.kind] },
        { title: 'BY', cell: ({ by }) => by },
        { title: 'AGE', cell: ({ task }) => ({ text: ageText(task.created_at, now()), whole: task.created_at }) },
        { title: 'TITLE', cell: ({ task }) => nameOfTask(task) },
      ],
      tasks,
    )
  }
  if (!isJson && tasks.length === 0) notes.print('Nothing waits for you.')
  if (!isJson && isCut) notes.print('Only the newest thousand tasks of each kind were looked at.')
  return exitCodes.done
}

const KINDS = { escalation: 'question', suggestion: 'suggestion', work: 'work' } as const
const LONGEST_TEXT = 2_000

function printCards({ out, now }: CommandContext, { command }: Workplace, tasks: readonly OpenTask[]): void {
  const short = shortIdsOf(tasks.map(({ task }) => task.id))
  for (const { task, by } of tasks) {
    const id = short(task.id)
    out.print(styled('bold', id), styled('dim', `  ${KINDS[task.kind]} of ${by} · ${ageText(task.created_at, now())}`))
    out.print('  ', styled('bold', visibleLine(task.title)))
    const text = (task.reasoning ?? restOfDescription(task)).slice(0, LONGEST_TEXT).trim()
    if (text !== '') out.print(indented(text))
    for (const line of [...callLines(task), ...changeLines(task)]) out.print('  │ ', ...line)
    for (const words of commandsFor(task, id)) out.print('  ', styled('cyan', command(words)))
    out.print()
  }
}

/** The margin shows that the words are the agent's: a line of them could look like one of the commands below. */
const indented = (text: string): string => `  │ ${visibleText(text).replaceAll('\n', '\n  │ ')}`

function commandsFor(task: TaskAnswer, id: string): string[] {
  if (task.kind === 'suggestion') {
    const reject = `muster reject ${id} --reason "…"`
    return task.metadata.stale === true ? [reject] : [`muster approve ${id}`, reject]
  }
  const agent = exhaustedAgent(task)
  if (agent !== null) return [`muster top-up ${shortId(agent)} 10000`]
  return answersTo(task, id)
}

/** The tool that waits to be called, and its arguments, one a line. */
function callLines(task: TaskAnswer): StyledText[][] {
  const call = suggestedCall(task)
  if (call === null) return []
  const args = isRecord(call.args) ? call.args : { arguments: call.args }
  const lines = Object.keys(args).map((key) => [`${visibleLine(key)}: ${valueText(args, key)}`])
  return [[styled('bold', `calls ${visibleLine(call.tool)}`)], ...lines]
}

/** The properties that differ, each before and after. */
function changeLines(task: TaskAnswer): StyledText[][] {
  return objectChanges(task).flatMap(({ before, after }) => {
    const keys = new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])
    return [...keys].flatMap((key) => {
      const [old, now] = [valueText(before, key), valueText(after, key)]
      if (old === now) return []
      return [
        ...(old === null ? [] : [[styled('red', `- ${visibleLine(key)}: ${old}`)]]),
        ...(now === null ? [] : [[styled('green', `+ ${visibleLine(key)}: ${now}`)]]),
      ]
    })
  })
}

const LONGEST_VALUE = 500

function valueText(properties: Record<string, unknown> | null, key: string): string | null {
  if (properties === null || !Object.hasOwn(properties, key)) return null
  const text = jsonText(properties[key])
  return text.length > LONGEST_VALUE ? `${text.slice(0, LONGEST_VALUE)}…` : text
}
