import { findAgent } from '../agents/agents.ts'
import type { Db } from '../db/pool.ts'
import { spawnRun } from '../journal/spawn-run.ts'
import { MusterError } from '../kernel/errors.ts'
import { fault } from '../kernel/fault.ts'
import { idFrom } from '../kernel/id.ts'
import type { BlockedReason } from '../kernel/run.ts'
import type { RunEvent } from '../kernel/run-event.ts'
import { type SpawnAgentArguments, spawnAgentArguments } from '../tools/run-tools.ts'
import { cancelRuns } from './cancel.ts'
import { continued } from './continue-child.ts'
import { evalOf } from './eval-calls.ts'
import { type ChildOutcome, readOutcomes } from './run-outcomes.ts'
import type { PendingCall } from './run-state.ts'
import { append, remainingMs, type Session } from './session.ts'
import { type OwnResult, showResults } from './show-results.ts'
import { toEvent } from './tool-result.ts'

/** Starts the sub-runs that are not there yet and takes the results of those that have ended. Answers how many are open. */
export async function settleChildren(session: Session, calls: readonly PendingCall[]): Promise<number> {
  const { deps } = session
  const idOf = new Map(calls.map((call) => [call, idFrom(call.key)]))
  const known = await readOutcomes(deps.pool, [...idOf.values()])
  const results: OwnResult[] = []
  const open: { call: PendingCall; id: string }[] = []
  for (const [call, id] of idOf) {
    const child = known.get(id)
    if (child?.hasEnded) {
      results.push({ call, result: resultOf(child), isError: false, startedAt: child.createdAt.getTime() })
    } else if (child) open.push({ call, id })
    else {
      const refusal = await spawn(session, call, id)
      if (refusal) results.push({ call, result: { error: refusal.message }, isError: true, blocked: refusal.blocked })
      else open.push({ call, id })
    }
  }
  if (open.length > 0) deps.onReady()
  const events = await showResults(session, results)
  const leftMs = remainingMs(session)
  if (leftMs !== null && leftMs <= 0) {
    events.push(...(await stopLate(session, open)))
    open.length = 0
  }
  if (events.length > 0) await append(session, events)
  return open.length
}

type Refusal = { message: string; blocked: BlockedReason | null }

async function spawn(session: Session, call: PendingCall, id: string): Promise<Refusal | null> {
  const { run, settings, deps } = session
  const args: SpawnAgentArguments = spawnAgentArguments.parse(call.args)
  const depth = run.depth + 1
  if (depth > settings.spawn_depth_limit) {
    const message = `Agents may be nested ${settings.spawn_depth_limit} deep at most, and this run is at that depth.`
    return { message, blocked: 'spawn_depth' }
  }
  const child = await findAgent(deps.pool, run.project_id, args.agent)
  if (!child) return { message: `There is no agent called "${args.agent}".`, blocked: null }
  if (!child.enabled) return { message: `The agent "${child.name}" is disabled.`, blocked: null }
  const fresh = {
    id,
    projectId: run.project_id,
    agentId: child.id,
    trigger: { type: 'spawn', parent_run_id: run.id, call_id: call.id, ...evalOf(run) },
    input: args.input,
    maxSteps: args.max_steps ?? child.max_steps ?? settings.subagent_max_steps,
    timeoutMs: args.timeout ?? child.default_timeout,
    parentRunId: run.id,
    ancestors: [...run.ancestors, run.id],
    rights: { ...session.rights },
    chainDepth: run.chain_depth,
  }
  const { resume_run_id: pausedId } = args
  let isSpawned: boolean
  try {
    const made = pausedId === undefined ? fresh : (tx: Db) => continued(tx, session, fresh, pausedId)
    isSpawned = await spawnRun(deps.pool, { id: run.id, fence: run.fence }, made)
  } catch (error) {
    if (error instanceof MusterError && error.status < 500) return { message: error.message, blocked: null }
    throw error
  }
  await fault('spawn.after_insert')
  // Cancelled or taken over: the next guard, or the next append, says which.
  return isSpawned ? null : { message: 'The run was stopped before the agent was started.', blocked: null }
}

function resultOf({ id, status, summary, errorMessage }: ChildOutcome): Record<string, unknown> {
  return { run_id: id, status, summary, error_message: errorMessage }
}

/** The parent's time is up: nobody waits for its open sub-runs, and they are cancelled. */
async function stopLate(session: Session, open: readonly { call: PendingCall; id: string }[]): Promise<RunEvent[]> {
  const { deps, run } = session
  if (open.length === 0) return []
  await cancelRuns(
    deps,
    run.project_id,
    open.map(({ id }) => id),
  )
  const error = 'The time of the run was up before the agent had finished; it was cancelled.'
  return open.map(({ call, id }) => toEvent(call, { error, run_id: id }, true, Date.now(), 'timeout'))
}
