// A specialist of a supervisor system ends with the decision agent_summary. Nobody sees more of its work than that.
import { readDecision } from '../kernel/decision.ts'
import { isSpecialist } from '../kernel/supervisor.ts'
import { leave, runCompleted, runFailed } from './end.ts'
import { userMessage } from './messages.ts'
import { misfit } from './opening.ts'
import { append, type OwnedRun, type Question } from './owned-run.ts'

const ASK =
  'Your work is over. Give your summary now: its result (COMPLETED, NEEDS_ASSISTANCE or FAILED), what you found or made, what you decided, and what the supervisor should do next.'
/** An answer that does not fit is asked for once more. */
const MOST_MISFITS = 1

/** The question that comes after the work, or null while the work goes on. */
export function summaryQuestion(owned: OwnedRun): Question | null {
  const { run, state, prompt } = owned
  if (!isSpecialist(run.part) || !state.isWorkDone) return null
  const problem = state.summaryProblems.at(-1)
  const asked = userMessage(problem === undefined ? ASK : `${ASK}\n\n${misfit(problem)}`)
  return {
    name: 'agent_summary',
    prompt: [{ role: 'system', content: prompt }, ...state.messages.slice(1), asked],
    commit: async (answer, stepDone, change) => {
      const read = readDecision('agent_summary', answer)
      if (read.ok) {
        const end = runCompleted(read.decision.short_summary)
        return leave(owned, end, [stepDone({ summary: { fits: read.decision } })], change)
      }
      const step = stepDone({ summary: { problem: read.problem } })
      if (state.summaryProblems.length < MOST_MISFITS) {
        await append(owned, [step], change)
        return 'again'
      }
      const end = runFailed('SUMMARY_INVALID', `The summary did not fit, twice: ${read.problem}`, state.text || null)
      return leave(owned, end, [step], change)
    },
  }
}
