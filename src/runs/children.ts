import { guessAgent } from '../agents/agent-names.ts'
import { findAgent } from '../agents/agents.ts'
import type { Db } from '../db/pool.ts'
import { callsOfRun } from '../journal/finished-calls.ts'
import { placeBelow } from '../journal/insert-run.ts'
import { spawnRun } from '../journal/spawn-run.ts'
import { MusterError } from '../kernel/errors.ts'
import { fault } from '../kernel/fault.ts'
import { idFrom } from '../kernel/id.ts'
import type { BlockedReason } from '../kernel/run.ts'
import type { RunEvent } from '../kernel/run-event.ts'
import { effectsParagraph } from '../tasks/made-calls-text.ts'
import { type SpawnAgentArguments, spawnAgentArguments } from '../tools/run-tools.ts'
import { goesOnWithRequest, requestOf } from './behind-request.ts'
import { cancelRuns } from './cancel.ts'
import { CHAIN, continued } from './continue-child.ts'
import { newestOfChain } from './continue-run.ts'
import { evalOf } from './eval-calls.ts'
import { append, type OwnedRun, remainingMs } from './owned-run.ts'
import type { PendingCall } from './pending-call.ts'
import { type ChildOutcome, readOutcomes } from './run-outcomes.ts'
import { type OwnResult, showResults } from './show-results.ts'
import { countStandstill } from './standstill.ts'
import { toEvent } from './tool-result.ts'

export interface OpenChildren {
  count: number
  /** True if all runs below wait, so that the time of this run stands still. */
  isStill: boolean
  /** The reason of a sub-run behind a request that ended without its model: this run ends like it, and continues it later. */
  unavailable: string | null
}

/** Starts sub-runs that do not exist yet and takes the results of ended ones. */
export async function settleChildren(owned: OwnedRun, calls: readonly PendingCall[]): Promise<OpenChildren> {
  const { deps } = owned
  const isStill = await countStandstill(owned)
  const idsOf = new Map(calls.map((call) => [call, childIds(owned, call)]))
  const known = await readOutcomes(
    deps.pool,
    [...idsOf.values()].flatMap(({ own, earlier }) => [own, ...earlier]),
  )
  const results: OwnResult[] = []
  const open: { call: PendingCall; id: string }[] = []
  let unavailable: string | null = null
  for (const [call, { own, earlier }] of idsOf) {
    const announced = earlier.map((id) => known.get(id)).find((child) => child !== undefined)
    const first = known.has(own) ? undefined : (announced ?? (await unansweredChild(owned, call)))
    const before = first && (await newestOutcome(deps.pool, first))
    const isUnfinished = before && before.status !== 'completed' && (!announced || isCutShort(owned, before))
    const continues = isUnfinished ? before.id : null
    const child = known.get(own) ?? (continues === null ? before : undefined)
    const id = child?.id ?? own
    if (child && isAway(owned, child)) unavailable = child.errorMessage ?? 'A model is unavailable.'
    else if (child?.hasEnded) {
      results.push({ call, result: resultOf(child), isError: false, startedAt: child.createdAt.getTime() })
    } else if (child) open.push({ call, id })
    else {
      const refusal = await spawn(owned, call, { id, continues })
      if (refusal) results.push({ call, result: { error: refusal.message }, isError: true, blocked: refusal.blocked })
      else open.push({ call, id })
    }
  }
  if (open.length > 0) deps.onReady()
  const events = await showResults(owned, results)
  const leftMs = remainingMs(owned)
  if (leftMs !== null && leftMs <= 0) {
    events.push(...(await stopLate(owned, open)))
    open.length = 0
  }
  if (events.length > 0) await append(owned, events)
  return { count: open.length, isStill, unavailable }
}

/** A sub-run that was cancelled with the run before this one, or ended without its model, is continued. */
const isCutShort = (owned: OwnedRun, child: ChildOutcome): boolean =>
  child.status === 'cancelled' || !child.hasEnded || isAway(owned, child)

const isAway = ({ run }: OwnedRun, { hasEnded, pauseReason }: ChildOutcome): boolean =>
  hasEnded && pauseReason === 'unavailable' && goesOnWithRequest(run)

/**
 * The sub-run of the same call that an earlier run of this chain made and got no result of, because its time was up.
 * The key tells that it is the same call.
 */
async function unansweredChild({ run, deps }: OwnedRun, { key }: PendingCall): Promise<ChildOutcome | undefined> {
  const { rows } = await deps.pool.query<{ id: string }>(
    `with recursive ${CHAIN}
     select c.id from chain join agent_runs c on c.parent_run_id = chain.id
     where c.key_scope = $2 and c.project_id = $3 order by c.created_at desc limit 1`,
    [run.id, key, run.project_id],
  )
  const id = rows[0]?.id
  return id === undefined ? undefined : (await readOutcomes(deps.pool, [id])).get(id)
}

/** The sub-run may have been continued since, by an earlier run of this chain or by a person. */
async function newestOutcome(db: Db, first: ChildOutcome): Promise<ChildOutcome> {
  const id = await newestOfChain(db, first.id)
  return id === first.id ? first : ((await readOutcomes(db, [id])).get(id) ?? first)
}

/** The id of the call's sub-run. A call that this run inherited may have one of an earlier run as well. */
function childIds({ run }: OwnedRun, { ref }: PendingCall): { own: string; earlier: string[] } {
  if (ref.startsWith(run.id)) return { own: idFrom(ref), earlier: [] }
  return { own: idFrom(`${run.id} ${ref}`), earlier: [idFrom(ref)] }
}

type Refusal = { message: string; blocked: BlockedReason | null }

async function spawn(
  owned: OwnedRun,
  call: PendingCall,
  { id, continues }: { id: string; continues: string | null },
): Promise<Refusal | null> {
  const { run, settings, deps } = owned
  const args: SpawnAgentArguments = spawnAgentArguments.parse(call.args)
  if (run.depth + 1 > settings.spawn_depth_limit) {
    const message = `Agents may be nested ${settings.spawn_depth_limit} deep at most, and this run is at that depth.`
    return { message, blocked: 'spawn_depth' }
  }
  const child = await findAgent(deps.pool, run.project_id, args.agent)
  if (!child) {
    const guess = await guessAgent(deps.pool, run.project_id, args.agent)
    return { message: `There is no agent called "${args.agent}".${guess}`, blocked: null }
  }
  if (!child.enabled) return { message: `The agent "${child.name}" is disabled.`, blocked: null }
  const fresh = {
    id,
    projectId: run.project_id,
    agentId: child.id,
    trigger: { type: 'spawn', parent_run_id: run.id, call_id: call.id, ...evalOf(run), ...requestOf(run) },
    input: args.input,
    maxSteps: args.max_steps ?? child.max_steps ?? settings.subagent_max_steps,
    timeoutMs: args.timeout ?? child.default_timeout,
    ...placeBelow(run),
    rights: { ...owned.rights },
    keyScope: call.key,
    payers: run.payers,
    chainDepth: run.chain_depth,
  }
  const pausedId = continues ?? args.resume_run_id
  let isSpawned: boolean
  try {
    const made =
      pausedId === undefined
        ? fresh
        : (tx: Db) => continued(tx, owned, fresh, { id: pausedId, isSilent: continues !== null })
    isSpawned = await spawnRun(deps.pool, { id: run.id, fence: run.fence }, made)
  } catch (error) {
    if (error instanceof MusterError && error.status < 500) return { message: error.message, blocked: null }
    throw error
  }
  await fault('spawn.after_insert')
  // The run was cancelled or taken over; the next guard, or the next append, tells which.
  return isSpawned ? null : { message: 'The run was stopped before the agent was started.', blocked: null }
}

function resultOf({ id, status, pauseReason, summary, errorMessage }: ChildOutcome): Record<string, unknown> {
  const error = pauseReason === 'outcome_unknown' ? UNDECIDED : errorMessage
  return { run_id: id, status, summary, error_message: error }
}

const UNDECIDED =
  'Nobody knows whether a call of this run took effect. A person was asked, and the work continues with the answer. ' +
  'Do not have it done again.'

/**
 * The parent's time is up. No run waits for its open sub-runs any more, so they are cancelled. The model is told the calls
 * that they have made, so that it does not have them made again.
 */
async function stopLate(owned: OwnedRun, open: readonly { call: PendingCall; id: string }[]): Promise<RunEvent[]> {
  const { deps, run } = owned
  if (open.length === 0) return []
  const runIds = open.map(({ id }) => id)
  await cancelRuns(deps, run.project_id, runIds, { isLate: true })
  const events: RunEvent[] = []
  for (const { call, id } of open) {
    const made = effectsParagraph(await callsOfRun(deps.pool, id))
    const error = made === '' ? CANCELLED : `${CANCELLED} ${RESUME}\n${made}`
    events.push(toEvent(call, { error, run_id: id }, true, Date.now(), 'timeout'))
  }
  return events
}

const CANCELLED = 'The time of the run was up before the agent had finished; the agent was cancelled.'
const RESUME = 'To continue its work, give its run_id as resume_run_id: then its calls are not made again.'
