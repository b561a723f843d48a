import { idFrom } from '../kernel/id.ts'
import type { RunEvent } from '../kernel/run-event.ts'
import { askHumanArguments } from '../tools/run-tools.ts'
import type { PendingCall } from './run-state.ts'
import { append, type Session } from './session.ts'
import { toEvent } from './tool-result.ts'

/** Asks the open questions and takes the answers that are there. Answers the number of questions without an answer. */
export async function settleQuestions(session: Session, calls: readonly PendingCall[]): Promise<number> {
  const { deps, run } = session
  const taskOf = new Map(calls.map((call) => [call, idFrom(call.key)]))
  for (const [call, taskId] of taskOf) {
    const { question } = askHumanArguments.parse(call.args)
    await deps.askHuman.ask({ taskId, projectId: run.project_id, runId: run.id, agentId: run.agent_id, question })
  }
  const answers = await deps.askHuman.answers([...taskOf.values()])
  const events: RunEvent[] = []
  for (const [call, taskId] of taskOf) {
    const answer = answers.get(taskId)
    if (answer) events.push(toEvent(call, answer.answer, answer.isRefused))
  }
  if (events.length > 0) await append(session, events)
  return calls.length - events.length
}
