// The offline model in a supervisor system. Its rules read the task, the plan, the summaries and the names of the
// specialists in a prompt (offline-system-message.ts), and understand nothing of the rest.
//   supervisor_decision  plans one todo for each of the first two specialists, hands them out one after the other, and
//                        finishes when all are done. It escalates a task that asks for a person, once, and one on which
//                        a specialist does not get any further.
//   agent_summary        repeats the specialist's last words.
//   the finalizer        writes a report: the plan, its results, the open parts.
//   the escalation       asks one question, and gives the work so far and the reason why it does not go on.
import type { AgentSummaryDecision, SupervisorDecision } from '../kernel/decision.ts'
import { CLOSING, withoutClosing } from './offline-prose.ts'
import { GIVEN, type Planned, readSystemMessage, type Summary, type SystemMessage } from './offline-system-message.ts'
import { cut, firstSentence, listed, shortened } from './offline-words.ts'

const LONGEST_TASK = 300
const MOST_OWNERS = 2
const MOST_FAILURES = 2
const ASKS_FOR_PERSON =
  /\b(?:ask|escalate to|check with|leave .{0,20} to|hand .{0,20} to) (?:a |an |the |some )?(?:person|people|human|humans|somebody|someone)\b|\b(?:person|people|human|somebody|someone) (?:must|should|shall|has to|have to|needs to|need to) (?:decide|approve|confirm|say|choose|look|check)\b/i

const NO_MESSAGE: SystemMessage = { task: '', answers: [], plan: [], history: [], specialists: [], asked: '' }

export function decideAsSupervisor(prompt: string): SupervisorDecision {
  const { task, answers, plan, history, specialists } = readSystemMessage(prompt) ?? NO_MESSAGE
  const last = history.at(-1)
  const after = last ? afterSummary(plan, last) : plan
  const escalate = (notes: string): SupervisorDecision => ({ plan: after, action: 'escalate', notes })
  if (ASKS_FOR_PERSON.test(task) && answers.length === 0) return escalate('The task asks for a person.')
  const failures = history.filter(({ result, agent_name: name }) => result !== 'COMPLETED' && name === last?.agent_name)
  if (last && failures.length >= MOST_FAILURES * (answers.length + 1)) return escalate(couldNot(last))
  const made = after.length > 0 ? after : firstPlan(task, specialists)
  const next = made.find(({ status }) => status === 'PENDING')
  if (!next && last && made.some(({ status }) => status === 'BLOCKED')) return escalate(couldNot(last))
  if (!next) return { plan: made, action: 'finish', notes: 'Every part is done.' }
  const agent = next.owner_agent ?? specialists[0] ?? ''
  const said = answers.map((answer) => `\n\nA person was asked, and said: ${answer}`).join('')
  const instructions = `${next.description}${said}\n\n${GIVEN}${task}`
  return {
    plan: made.map((toDo) => (toDo === next ? { ...toDo, status: 'IN_PROGRESS' } : toDo)),
    action: 'delegate',
    agent,
    instructions,
    notes: `${agent} does the next part.`,
  }
}

const couldNot = ({ agent_name: name }: Summary): string => `${name} could not do its part.`

/** A part that was in progress is done, or blocked; a part that was blocked before may be tried again. */
function afterSummary(plan: readonly Planned[], { result }: Summary): Planned[] {
  const isDone = result === 'COMPLETED'
  return plan.map((toDo) => {
    if (toDo.status === 'IN_PROGRESS') return { ...toDo, status: isDone ? 'DONE' : 'BLOCKED' }
    return toDo.status === 'BLOCKED' ? { ...toDo, status: 'PENDING' } : toDo
  })
}

const PARTS = ['Find out what is needed for', 'Put together the answer to']

function firstPlan(task: string, specialists: readonly string[]): Planned[] {
  return specialists.slice(0, MOST_OWNERS).map((owner, place) => ({
    id: `todo_${place + 1}`,
    description: `${PARTS[place]} ${named(task)}`,
    status: 'PENDING',
    owner_agent: owner,
  }))
}

/** The task by its first sentence, in quotation marks. A question keeps its mark. */
function named(task: string): string {
  const first = firstSentence(task, LONGEST_TASK)
  const isQuestion = task.trimStart().startsWith(`${first}?`)
  return `"${first}${isQuestion ? '?' : ''}"`
}

export function summariseWork(said: string): AgentSummaryDecision {
  const text = cut(withoutClosing(said).trim(), 2_000) || 'Nothing was said.'
  return {
    result: 'COMPLETED',
    short_summary: text,
    key_decisions: [shortened(firstSentence(text, 200), 200)],
    next_instructions_for_supervisor: 'Go on with the plan.',
  }
}

const ASKS_FOR_QUESTION = /\bquestion\b/i
const ASKS_FOR_ANSWER = /\banswer\b/i

/** The text of the finalizer or of the escalation, by the last words of their prompts; null for every other prompt. */
export function writeAsNode(message: SystemMessage): string | null {
  if (ASKS_FOR_QUESTION.test(message.asked)) return questionOn(message)
  return ASKS_FOR_ANSWER.test(message.asked) ? reportOn(message) : null
}

/** A report of this length fits the tokens that a model may answer with by default. */
const LONGEST_PART = 1_200
const MOST_PARTS = 5
const MOST_NAMED = 3

function reportOn({ task, answers, plan, history }: SystemMessage): string {
  const shown = history.slice(-MOST_PARTS)
  const open = plan.filter(({ status }) => status !== 'DONE').map(({ description }) => shortened(description, 120))
  const parts = [
    `Report on ${named(task)}`,
    ...shown.map((summary, place) => `${place + 1}. ${partOf(summary, plan, history)}\n${resultOf(summary)}`),
    ...(history.length === 0 ? ['Nobody was given a part of it, so there is nothing to report.'] : []),
    ...answers.map((answer) => `A person was asked, and said: "${shortened(answer, 300)}"`),
    open.length === 0 ? 'Nothing is left to do.' : `Left to do: ${listed(open, MOST_NAMED)}.`,
  ]
  return `${parts.join('\n\n')} ${CLOSING}`
}

/** The n-th summary of a specialist is about the n-th todo that it owns. */
function partOf(summary: Summary, plan: readonly Planned[], history: readonly Summary[]): string {
  const own = history.filter(({ agent_name: name }) => name === summary.agent_name)
  const todos = plan.filter(({ owner_agent: owner }) => owner === summary.agent_name)
  const todo = todos[Math.min(own.indexOf(summary), todos.length - 1)]
  return todo ? shortened(todo.description, LONGEST_TASK) : `What ${summary.agent_name} did`
}

/** The heading says already what was asked for. */
const OPENING = /^I was asked to [^\n]{1,600}?\.\s+(?=\S)/

function resultOf({ result, short_summary: text }: Summary): string {
  const told = cut(withoutClosing(text).trim().replace(OPENING, ''), LONGEST_PART)
  return result === 'COMPLETED' ? told : `This part was not done (${result}): ${told}`
}

function questionOn({ task, plan, history }: SystemMessage): string {
  const last = history.at(-1)
  const done = plan.filter(({ status }) => status === 'DONE').length
  const progress = done > 0 ? `${done} of ${plan.length} parts are done.` : 'None of the work has been done yet.'
  const failed = last && last.result !== 'COMPLETED' ? last : null
  return [
    failed ? `How shall we go on with ${named(task)}?` : `What is your answer to ${named(task)}?`,
    failed
      ? `${progress} ${failed.agent_name} does not get any further: ${cut(withoutClosing(failed.short_summary).trim(), 600)}`
      : `${progress} The task asks for a person, so it waits for you.`,
    `With your answer the work goes on. ${CLOSING}`,
  ].join('\n\n')
}
