// The run of a task begins with decisions: whether somebody else does the task, and whether it is split. Each is a step
// like any other, with its guards, its tokens and its place in the journal. The decision takes effect in the transaction
// that journals it, so a crash leaves both or neither.
import type { RunChange } from '../journal/run-change.ts'
import type { OpeningStep, RunEvent } from '../kernel/run-event.ts'
import { completed } from './end.ts'
import { userMessage } from './messages.ts'
import { apply, entryOf, type Session, withChange } from './session.ts'

/** Sets the question that comes before the next step of the work, if there is one. */
export async function prepareQuestion(session: Session): Promise<void> {
  session.question = await nextQuestion(session)
}

async function nextQuestion({ run, agent, state, deps, prompt }: Session): Promise<Session['question']> {
  if (run.task_id === null || !deps.opening || state.hasWorked || state.opening?.next === 'work') return null
  const question = await deps.opening.ask(run, agent, state.opening)
  if (!question) return null
  const text = state.opening?.next === 'again' ? `${question.text}\n\n${misfit(state.opening.note)}` : question.text
  return { ...question, prompt: [{ role: 'system', content: prompt }, userMessage(text)] }
}

const misfit = (problem: string): string => `Your last answer could not be used: ${problem} Answer again.`

export async function commitDecision(
  session: Session,
  question: NonNullable<Session['question']>,
  answer: string,
  stepDone: (decision: OpeningStep) => RunEvent,
  change: RunChange,
): Promise<'again' | 'left'> {
  const { run, deps, state } = session
  const { opening } = deps
  if (!opening) throw new Error('a question was asked that nobody reads')
  const write = (step: OpeningStep) => {
    if (step.next !== 'done') return { events: [stepDone(step)], change }
    const end = completed(step.note)
    return { events: [stepDone(step), end.event], change: withChange(change, end.set) }
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
  session.question = null
  if (step.next !== 'done') return 'again'
  deps.onTasks?.(run.project_id)
  return 'left'
}
