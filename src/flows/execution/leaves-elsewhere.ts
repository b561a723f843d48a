// Leaves under way elsewhere: agents have slots of their own, and functions may be handed out to other processes.
import type { Topology } from '../../kernel/flow.ts'
import type { FlowEvent } from '../../kernel/flow-run.ts'
import { isAgentLeaf, readQueued } from './agent-leaves.ts'
import { beginAll, isFunctionLeaf } from './begin-leaf.ts'
import type { ClaimedFlow } from './claim.ts'
import { readHandouts } from './handouts.ts'
import { settledAgents } from './leaf-outcomes.ts'
import type { OwnedFlow } from './owned-flow.ts'
import { takeOutcome } from './settle-leaf.ts'
import { attemptKey } from './state.ts'
import { setEnd } from './watch-leaves.ts'

/**
 * Takes up leaves that an earlier owner left to others. A leaf that was announced and never begun is begun now; if
 * nothing may begin, it waits with the others.
 */
export async function takeUpLeaves(
  owned: OwnedFlow,
  events: FlowEvent[],
  { mayBegin }: { mayBegin: boolean },
): Promise<void> {
  const { state, deps, flow, handedOut } = owned
  const begun = state.fresh.filter((leaf) => state.begun.has(attemptKey(leaf)))
  if (begun.length === 0) return
  const functions = begun.filter(isFunctionLeaf).map((leaf) => leaf.id)
  const handouts = await readHandouts(deps.pool, flow.id, functions)
  const queued = await readQueued(deps.pool, owned.leafRuns, begun.filter(isAgentLeaf))
  const elsewhere = begun.filter((leaf) =>
    isAgentLeaf(leaf) ? mayBegin || queued.inPart.has(leaf) : handouts.has(attemptKey(leaf)),
  )
  for (const leaf of elsewhere) {
    state.running.set(leaf.id, leaf)
    state.pools.resume(leaf)
    if (isFunctionLeaf(leaf)) handedOut.add(leaf.id)
  }
  state.fresh = state.fresh.filter((leaf) => !state.running.has(leaf.id))
  const unqueued = elsewhere.filter((leaf) => isAgentLeaf(leaf) && !queued.whole.has(leaf))
  if (mayBegin && unqueued.length > 0) await beginAll(owned, unqueued)
  await checkElsewhere(owned, events)
}

interface News
  extends Pick<
    ClaimedFlow,
    'ended_leaves' | 'adjustments' | 'timeout' | 'workers' | 'wanted_topology' | 'is_topology_new'
  > {
  is_cancelled: boolean
}

/** Reads the outcomes of leaves that are under way elsewhere, and the changes that people asked for. */
export async function checkElsewhere(owned: OwnedFlow, events: FlowEvent[]): Promise<void> {
  const { deps, flow, state } = owned
  const { rows } = await deps.pool.query<News>(
    `select ended_leaves, cancel_requested_at is not null as is_cancelled, adjustments, timeout, workers, wanted_topology,
       topology_wanted_at is not null as is_topology_new from flow_runs where id = $1`,
    [flow.id],
  )
  owned.seenLeaves = rows[0]?.ended_leaves ?? owned.seenLeaves
  if (rows[0] && rows[0].adjustments > owned.seenAdjustments) {
    owned.seenAdjustments = rows[0].adjustments
    flow.workers = rows[0].workers
    setEnd(owned, rows[0].timeout)
  }
  if (rows[0]?.is_cancelled) owned.mailbox.put({ type: 'stop', as: 'cancelled' })
  if (rows[0]?.is_topology_new) wantTopology(owned, rows[0])
  await owned.waits.check()
  const agents = [...state.running.values()].filter(isAgentLeaf)
  const settled = [...(await settledAgents(deps.pool, owned.leafRuns, agents)), ...(await settledHandouts(owned))]
  for (const { leaf, outcome } of settled) {
    takeOutcome(owned, events, leaf, outcome, state.begun.get(attemptKey(leaf)) ?? Date.now())
  }
}

async function settledHandouts({ deps, flow, state, handedOut }: OwnedFlow) {
  const handouts = await readHandouts(deps.pool, flow.id, [...handedOut])
  return [...handedOut].flatMap((id) => {
    const leaf = state.running.get(id)
    const outcome = leaf && handouts.get(attemptKey(leaf))
    if (!leaf || !outcome) return []
    handedOut.delete(id)
    return [{ leaf, outcome }]
  })
}

export function wantTopology(
  owned: OwnedFlow,
  { wanted_topology: wanted, is_topology_new: isNew }: { wanted_topology: Topology | null; is_topology_new: boolean },
): void {
  if (wanted === null) return
  owned.state.pools.want(wanted, isNew)
  if (isNew) owned.newTopology = wanted
}
