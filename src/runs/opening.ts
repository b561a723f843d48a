// The run of a task begins with decisions: whether somebody else does the task, and whether it is split. Each is a step
// like any other, with its guards, its tokens and its place in the journal. The decision takes effect in the transaction
// that journals it, so a crash leaves both or neither.
import type { OpeningStep } from '../kernel/run-event.ts'
import { completed } from './end.ts'
import { userMessage } from './messages.ts'
import { apply, entryOf, type OpeningQuestion, type Question, type Session, withChange } from './session.ts'

/** The question that comes before the work, if there is one. */
export async function openingQuestion(session: Session): Promise<Question | null> {
  const { run, agent, state, deps, prompt } = session
  if (run.task_id === null || !deps.opening || state.hasWorked || state.opening?.next === 'work') return null
  const question = await deps.opening.ask(run, agent, state.opening)
  if (!question) return null
  const text = state.opening?.next === 'again' ? `${question.text}\n\n${misfit(state.opening.note)}` : question.text
  return {
    name: question.name,
    prompt: [{ role: 'system', content: prompt }, userMessage(text)],
    commit: (...answered) => commitDecision(session, question, ...answered),
  }
}

/** The words with which an answer that did not fit is asked for once more. */
export const misfit = (problem: string): string => `Your last answer could not be used: ${problem} Answer again.`

async function commitDecision(
  session: Session,
  question: OpeningQuestion,
  ...[answer, stepDone, change]: Parameters<Question['commit']>
): Promise<'again' | 'left'> {
  const { run, deps, state } = session
  const { opening } = deps
  if (!opening) throw new Error('a question was asked that nobody reads')
  const write = (step: OpeningStep) => {
    if (step.next !== 'done') return { events: [stepDone({ decision: step })], change }
    const end = completed(step.note)
    return { events: [stepDone({ decision: step }), end.event], change: withChange(change, end.set) }
  }
  const { step, appended } = await opening.decide({
    run,
    question,
    answer,
    misfits: state.opening?.misfits ?? 0,
    entryFor: (decided) => {
      const { events, change } = write(decided)
      return entryOf(session, events, change)
    },
  })
  apply(session, write(step).events, appended)
  if (step.next !== 'done') return 'again'
  deps.onTasks?.(run.project_id)
  return 'left'
}
