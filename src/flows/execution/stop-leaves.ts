// The end of leaves whose results nobody waits for: their functions, their handouts and their runs.
import { MARK_CHANGED } from '../../db/changed-in.ts'
import type { Db } from '../../db/pool.ts'
import { type FlowLeaf, hasAgentStage } from '../machine/flow-leaf.ts'
import { isAgentLeaf, runIdsOf } from './agent-leaves.ts'
import type { ClaimedFlow } from './claim.ts'
import { withdrawLeaves } from './handouts.ts'
import type { FlowDeps, OwnedFlow } from './owned-flow.ts'
import { attemptKey } from './state.ts'

export async function stopLeaves(owned: OwnedFlow, leaves: readonly FlowLeaf[]): Promise<void> {
  const { state, flow, deps, signals, handedOut, waits } = owned
  for (const { id } of leaves) signals.get(id)?.abort()
  // A pipeline that has been stopped queues no further run. The runs that it queues at this moment are cancelled, too.
  await waits.allQueued()
  const begun = leaves.filter((leaf) => state.begun.has(attemptKey(leaf)))
  await cancelLeafRuns(deps, flow, begun)
  const handed = leaves.map(({ id }) => id).filter((id) => handedOut.delete(id))
  if (handed.length > 0) await withdrawLeaves(deps.pool, flow.id, handed)
}

/**
 * Cancels the open runs of these leaves. The ids of an agent leaf's runs are known, and people's decisions continue these;
 * the ids of a stage's runs are looked up.
 */
export async function cancelLeafRuns(deps: FlowDeps, flow: ClaimedFlow, leaves: readonly FlowLeaf[]): Promise<void> {
  const runIds = leaves.filter(isAgentLeaf).flatMap((leaf) => runIdsOf(flow.id, leaf))
  if (runIds.length > 0) {
    await deps.cancelRuns(flow.project_id, runIds)
    await stopRuns(deps, flow, () => readUnstopped(deps.pool, CONTINUING, [runIds]))
  }
  const withStages = leaves.filter(hasAgentStage).map(({ id }) => id)
  if (withStages.length > 0)
    await stopRuns(deps, flow, () => readUnstopped(deps.pool, OF_LEAVES, [flow.id, withStages]))
}

/** Cancels the open runs of all leaves. */
export const cancelAllRuns = (deps: FlowDeps, flow: ClaimedFlow): Promise<void> =>
  stopRuns(deps, flow, () => readUnstopped(deps.pool, OF_LEAVES, [flow.id, null]))

interface Unstopped {
  id: string
  /** True for a run that has paused because the outcome of a call is unknown. False for an open run. */
  isUndecided: boolean
}

/**
 * Cancels open runs, and gives up the undecided ones: no decision continues a run that was asked to end. An open run may
 * become an undecided one meanwhile, and a decision may continue an undecided one, so all are read again, at one
 * instant, until none is left.
 */
async function stopRuns(
  { pool, cancelRuns }: FlowDeps,
  { project_id: projectId }: ClaimedFlow,
  read: () => Promise<Unstopped[]>,
): Promise<void> {
  for (;;) {
    const { open = [], undecided = [] } = Object.groupBy(await read(), (run) =>
      run.isUndecided ? 'undecided' : 'open',
    )
    if (open.length > 0) await cancelRuns(projectId, idsOf(open))
    if (undecided.length > 0) await giveUp(pool, idsOf(undecided))
    if (open.length + undecided.length === 0) return
  }
}

const idsOf = (runs: readonly Unstopped[]): string[] => runs.map(({ id }) => id)

/** A decision locks the run first: it comes before this statement and has made another run, or it comes too late. */
async function giveUp(db: Db, runIds: readonly string[]): Promise<void> {
  await db.query(
    `update agent_runs set cancel_requested_at = muster.now(), ${MARK_CHANGED} where id in (
       select id from agent_runs where id = any($1::uuid[]) and cancel_requested_at is null order by id for no key update)`,
    [runIds],
  )
}

const RUNS_AT_ONCE = 500

const UNSTOPPED = `select id, completed_at is not null as "isUndecided" from agent_runs
  where status in ('queued', 'running', 'paused') and (completed_at is null or pause_reason = 'outcome_unknown')
    and cancel_requested_at is null`

const OF_LEAVES = `${UNSTOPPED} and flow_run_id = $1 and ($2::text[] is null or trigger->>'task_id' = any($2))
  limit ${RUNS_AT_ONCE}`

/** The next attempt at a leaf continues a run, too; that attempt is stopped as a leaf of its own. */
const CONTINUING = `
  with recursive chain (id) as (
    select unnest($1::uuid[])
    union select r.id from chain c join agent_runs r on r.base_run_id = c.id and r.resumed_from = c.id
    where r.trigger->>'type' = 'resume'
  ) ${UNSTOPPED} and id in (select id from chain) limit ${RUNS_AT_ONCE}`

async function readUnstopped(db: Db, sql: string, values: unknown[]): Promise<Unstopped[]> {
  return (await db.query<Unstopped>(sql, values)).rows
}
