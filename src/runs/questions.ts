import { idFrom } from '../kernel/id.ts'
import { askHumanArguments } from '../tools/run-tools.ts'
import { append, type OwnedRun } from './owned-run.ts'
import type { PendingCall } from './pending-call.ts'
import { type OwnResult, showResults } from './show-results.ts'

/** Asks the open questions and takes the answers that exist. Returns the number of questions without an answer. */
export async function settleQuestions(owned: OwnedRun, calls: readonly PendingCall[]): Promise<number> {
  const { deps, run, agent } = owned
  const taskOf = new Map(calls.map((call) => [call, idFrom(call.ref)]))
  for (const [call, taskId] of taskOf) {
    const { question } = askHumanArguments.parse(call.args)
    await deps.askHuman.ask({ taskId, projectId: run.project_id, runId: run.id, agentId: agent.id, question })
  }
  const answers = await deps.askHuman.answers([...taskOf.values()])
  const results: OwnResult[] = []
  for (const [call, taskId] of taskOf) {
    const given = answers.get(taskId)
    if (given) results.push({ call, result: given.answer, isError: given.isRefused })
  }
  const events = await showResults(owned, results)
  if (events.length > 0) await append(owned, events)
  return calls.length - results.length
}
