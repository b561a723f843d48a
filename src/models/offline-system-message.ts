// A prompt of a supervisor system in a user message: the task, the plan and the summaries as lines of JSON, and the
// context with the specialists. The task may contain such lines itself, so the last ones count. The work is linear.
import { isRecord } from '../kernel/is-record.ts'

export interface Planned {
  id: string
  description: string
  status: 'PENDING' | 'IN_PROGRESS' | 'DONE' | 'BLOCKED'
  owner_agent?: string
}

export interface Summary {
  agent_name: string
  result: string
  short_summary: string
}

export interface SystemMessage {
  /** The task without its heading, and without the answers of people. */
  task: string
  /** The answers of people who were asked meanwhile. */
  answers: string[]
  plan: Planned[]
  history: Summary[]
  specialists: string[]
  /** The words behind the context, which say what is to be written. */
  asked: string
}

/** Behind these words the offline model tells a specialist the whole task. */
export const GIVEN = 'The task as it was given: '

const LONGEST_LINE = 4_000_000
/** The heading that supervisor/nodes.ts writes. */
const ANSWERED = '\n\nA person was asked meanwhile, and answered:\n'

/** Null if the message is not a prompt of a supervisor system. */
export function readSystemMessage(text: string): SystemMessage | null {
  if (!text.includes('"specialists":[')) return null
  const lines = text.split('\n')
  const context = lines.findLastIndex((line) => specialistsIn(line) !== null)
  const history = listBefore(lines, context)
  const plan = listBefore(lines, history)
  if (plan === -1) return null
  const [task, answers] = dividedAtAnswers(taskIn(lines.slice(0, plan)))
  return {
    task,
    answers,
    plan: valuesIn(lines[plan], isPlanned),
    history: valuesIn(lines[history], isSummary),
    specialists: specialistsIn(lines[context] ?? '') ?? [],
    asked: lines
      .slice(context + 1)
      .join('\n')
      .trim(),
  }
}

/** The line above the task and the line above the plan say what follows. */
function taskIn(lines: readonly string[]): string {
  const end = lines.findLastIndex((line) => line.trim() !== '')
  return lines.slice(1, Math.max(1, end)).join('\n').trim() || lines.join('\n').trim()
}

function dividedAtAnswers(text: string): [task: string, answers: string[]] {
  const at = text.lastIndexOf(ANSWERED)
  if (at === -1) return [text, []]
  const answers = text.slice(at + ANSWERED.length).split(/^- /m)
  return [text.slice(0, at).trim(), answers.map((answer) => answer.trim()).filter((answer) => answer !== '')]
}

/** The place of the last line before `end` that is a list; -1 if there is none. */
function listBefore(lines: readonly string[], end: number): number {
  for (let place = end - 1; place >= 0; place -= 1) if (Array.isArray(jsonIn(lines[place] ?? ''))) return place
  return -1
}

function valuesIn<Value>(line: string | undefined, isOne: (value: unknown) => value is Value): Value[] {
  const list = jsonIn(line ?? '')
  return Array.isArray(list) ? list.filter(isOne) : []
}

function specialistsIn(line: string): string[] | null {
  const value = line.includes('"specialists":[') ? jsonIn(line) : null
  if (!isRecord(value) || !Array.isArray(value.specialists)) return null
  return value.specialists.filter((name) => typeof name === 'string')
}

function jsonIn(line: string): unknown {
  if (!/^\s*[[{]/.test(line) || line.length > LONGEST_LINE) return undefined
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

const isPlanned = (value: unknown): value is Planned =>
  isRecord(value) &&
  typeof value.id === 'string' &&
  typeof value.description === 'string' &&
  typeof value.status === 'string'

const isSummary = (value: unknown): value is Summary =>
  isRecord(value) && typeof value.agent_name === 'string' && typeof value.short_summary === 'string'
