// The message of a task's run: "Task: …", the description, and the words of others under the headings of
// org/task-text.ts and org/escalate.ts.

import { CONTINUE } from '../kernel/continue-phrase.ts'

export interface TaskMessage {
  title: string
  description: string
  /** The titles of the tasks whose results are told. */
  earlier: string[]
  /** The answers to the agent's calls for help, and the agents that gave them. */
  advice: string
  advisers: string[]
  /** Set if the task is to help a subordinate that is stuck. */
  stuck: { agent: string; task: string; error: string } | null
}

const TASK = 'Task:'
const EARLIER = '\nResults that this task builds on:\n'
const PARTS = '\nThe task was split, and this is what became of its parts:\n'
const MADE = '\nThese calls have been made and stand:\n'
const UNKNOWN = '\nNobody knows whether these calls took effect:\n'
const ADVICE = '\nYou were stuck on this task and asked for help. This was answered:\n'
const FAILURE = '\nThe last attempt failed: '

/** Null if the message is not that of a task's run. */
export function readTaskMessage(text: string): TaskMessage | null {
  if (!text.startsWith(TASK)) return null
  const [untilFailure] = dividedAtLast(text, FAILURE)
  const [untilAdvice, advice] = dividedAtLast(untilFailure, ADVICE)
  const [untilMade] = dividedAtLast(dividedAtLast(untilAdvice, UNKNOWN)[0], MADE)
  const [untilParts] = dividedAtLast(untilMade, PARTS)
  const [own, earlier] = dividedAtLast(untilParts, EARLIER)
  const end = own.indexOf('\n')
  const title = own.slice(TASK.length, end === -1 ? undefined : end).trim()
  const description = end === -1 ? '' : own.slice(end).trim()
  return {
    title,
    description,
    earlier: namesIn(earlier, /^- (.{1,200}?) \([a-z-]+\): /gm),
    advice,
    advisers: namesIn(advice, /^- (.{1,200}?): /gm),
    stuck: readStuck(title, description),
  }
}

/** The advice in a message that lets a run continue; null if the message is not such a one. */
export function readContinuation(text: string): { advice: string } | null {
  if (!text.startsWith(CONTINUE)) return null
  const [untilFailure] = dividedAtLast(text, FAILURE)
  return { advice: dividedAtLast(untilFailure, ADVICE)[1] }
}

/** The words that tell the agent its work. Results and errors are quotations, so tool names in them ask for nothing. */
export const ordersIn = ({ title, description, advice }: TaskMessage): string =>
  [title, description, advice].filter((part) => part !== '').join('\n\n')

/** "Agent Ada is stuck": "Ada is blocked on the task "…". The last error: …" */
function readStuck(title: string, description: string): TaskMessage['stuck'] {
  const [, agent] = /^Agent (.{1,200}) is stuck$/.exec(title) ?? []
  if (agent === undefined) return null
  const [, task] = /^.{1,200} is blocked on the task "(.{0,500})"\.$/m.exec(description) ?? []
  const [, error] = /^The last error: (.*)$/m.exec(description) ?? []
  return task === undefined || error === undefined ? null : { agent, task, error }
}

const namesIn = (list: string, pattern: RegExp): string[] =>
  Array.from(list.matchAll(pattern), ([, name]) => name ?? '')

/** Headings stand behind the description, which may contain the same words: the last place counts. */
export function dividedAtLast(text: string, heading: string): [before: string, after: string] {
  const at = text.lastIndexOf(heading)
  return at === -1 ? [text, ''] : [text.slice(0, at), text.slice(at + heading.length)]
}
