// Calls that wait for a person. The owner of the run puts them before people, reads the decisions made so far, and
// journals each decision before it acts on it.
import { getCommittedSettings } from '../identity/settings.ts'
import { fault } from '../kernel/fault.ts'
import type { RunEvent } from '../kernel/run-event.ts'
import type { Tool } from '../kernel/tool.ts'
import { type CallDecision, callTaskId, expireCalls, readDecisions, suggestCall } from '../tasks/call-suggestions.ts'
import { listedName, schemaHash } from '../tools/tool-identity.ts'
import { append, databaseNow, type OwnedRun } from './owned-run.ts'
import type { PendingCall } from './pending-call.ts'
import { type OwnResult, showResults } from './show-results.ts'
import { toolGone } from './tool-result.ts'

export interface OpenApprovals {
  count: number
  /** The instant at which the first of them counts as rejected, by the database's clock; null if none will. */
  rejectedAtMs: number | null
}

/** An approved call is an ordinary pending call from then on; a rejected one has its result. */
export async function settleApprovals(owned: OwnedRun, calls: readonly PendingCall[]): Promise<OpenApprovals> {
  const { run, stage } = owned
  const taskOf = new Map(calls.map((call) => [call, callTaskId(run.id, call.ref)]))
  for (const [call, taskId] of taskOf) {
    const tool = stage.byName.get(call.name)
    if (tool) await putForward(owned, call, tool, taskId)
  }
  const decisions = await decide(owned, [...taskOf.values()])
  const events: RunEvent[] = []
  const refused: OwnResult[] = []
  const open: number[] = []
  let count = 0
  for (const [call, taskId] of taskOf) {
    const decision = decisions.get(taskId)
    const tool = stage.byName.get(call.name)
    if (!decision && !tool) events.push(toolGone(call))
    else if (!decision || decision.kind === 'open') {
      count++
      if (decision?.leftMs != null) open.push(decision.leftMs)
    } else {
      const problem = problemOf(decision, call, tool)
      if (problem === null) events.push(decided(call, taskId, decision))
      else refused.push({ call, result: { error: problem }, isError: true, isRejected: true })
    }
  }
  const settled = await showResults(owned, refused)
  for (const event of settled) events.push(...withDecision(event, taskOf, decisions))
  if (events.length > 0) {
    await fault('approval.after_decision')
    await append(owned, events)
    await fault('approval.before_call')
  }
  return { count, rejectedAtMs: open.length > 0 ? databaseNow(owned) + Math.min(...open) : null }
}

async function putForward({ run, agent, deps }: OwnedRun, call: PendingCall, tool: Tool, taskId: string) {
  await suggestCall(deps.pool, {
    taskId,
    projectId: run.project_id,
    runId: run.id,
    agentId: agent.id,
    callId: call.id,
    tool: listedName(tool),
    args: call.args,
    reasoning: call.approval?.reasoning ?? '',
    schemaHash: schemaHash(tool),
    depth: run.chain_depth,
  })
}

/** The limit is read anew: a change of it restarts the timer of a run that sleeps, or is seen here. */
async function decide({ deps, run }: OwnedRun, taskIds: string[]): Promise<Map<string, CallDecision>> {
  const timeoutMs = (await getCommittedSettings(deps.pool, run.project_id))?.approval_timeout ?? null
  const decisions = await readDecisions(deps.pool, taskIds, timeoutMs)
  const isLate = [...decisions.values()].some((each) => each.kind === 'open' && each.leftMs === 0)
  if (timeoutMs === null || !isLate) return decisions
  await expireCalls(deps.pool, taskIds, timeoutMs)
  return readDecisions(deps.pool, taskIds, timeoutMs)
}

type Decided = Exclude<CallDecision, { kind: 'open' }>

/** The reason why the call is not made, for the model; null if it is made. */
function problemOf(decision: Decided, { name }: PendingCall, tool: Tool | undefined): string | null {
  if (decision.kind === 'rejected') {
    const reason = decision.reason?.trim()
    return `This call was not made: it was rejected.${reason ? ` The reason: ${reason}` : ''}`
  }
  if (!tool) return `This call was not made: there is no tool called "${name}" any more.`
  const isSame = schemaHash(tool) === decision.schemaHash
  return isSame
    ? null
    : `This call was not made: the arguments of the tool "${name}" have changed since the call was approved.`
}

function decided({ step, id }: PendingCall, taskId: string, decision: Decided): RunEvent {
  const reason = decision.kind === 'rejected' && decision.reason !== null ? { reason: decision.reason } : {}
  const data = { step, call_id: id, task_id: taskId, decision: decision.kind, by: decision.by, ...reason }
  return { kind: 'tool.decided', data }
}

/** The result of a call that is not made, after the decision about the call. */
function withDecision(
  event: RunEvent,
  taskOf: ReadonlyMap<PendingCall, string>,
  decisions: ReadonlyMap<string, CallDecision>,
): RunEvent[] {
  if (event.kind !== 'tool.completed') return [event]
  const found = [...taskOf].find(([call]) => call.id === event.data.call_id)
  const decision = found && decisions.get(found[1])
  if (!found || !decision || decision.kind === 'open') return [event]
  return [decided(found[0], found[1], decision), event]
}
