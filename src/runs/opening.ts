// The run of a task begins with two decisions: is the task delegated, and is it split. Each is a step like any other,
// and takes effect in the transaction that journals it.
import type { OpeningStep } from '../kernel/run-event.ts'
import { runCompleted } from './end.ts'
import { userMessage } from './messages.ts'
import { apply, entryOf, type OpeningQuestion, type OwnedRun, type Question, withChange } from './owned-run.ts'

/** The question that comes before the work, if there is one. */
export async function openingQuestion(owned: OwnedRun): Promise<Question | null> {
  const { run, agent, state, deps, prompt } = owned
  if (run.task_id === null || !deps.opening || state.hasWorked || state.opening?.next === 'work') return null
  const question = await deps.opening.ask(run, agent, state.opening)
  if (!question) return null
  const text = state.opening?.next === 'again' ? `${question.text}\n\n${misfit(state.opening.note)}` : question.text
  return {
    name: question.name,
    prompt: [{ role: 'system', content: prompt }, userMessage(text)],
    commit: (...answered) => commitDecision(owned, question, ...answered),
  }
}

export const misfit = (problem: string): string => `Your last answer could not be used: ${problem} Answer again.`

async function commitDecision(
  owned: OwnedRun,
  question: OpeningQuestion,
  ...[answer, stepDone, change]: Parameters<Question['commit']>
): Promise<'again' | 'left'> {
  const { run, deps, state } = owned
  const { opening } = deps
  if (!opening) throw new Error('an answer arrived for a question that this process cannot ask')
  const write = (step: OpeningStep) => {
    if (step.next !== 'done') return { events: [stepDone({ decision: step })], change }
    const end = runCompleted(step.note)
    return { events: [stepDone({ decision: step }), end.event], change: withChange(change, end.set) }
  }
  const { step, appended } = await opening.decide({
    run,
    question,
    answer,
    misfits: state.opening?.misfits ?? 0,
    entryFor: (decided) => {
      const { events, change } = write(decided)
      return entryOf(owned, events, change)
    },
  })
  apply(owned, write(step).events, appended)
  if (step.next !== 'done') return 'again'
  deps.onTasks?.(run.project_id)
  return 'left'
}
