// Leaves that are under way elsewhere: agents have slots of their own, and functions may be handed out.
import type { Topology } from '../kernel/flow.ts'
import type { FlowEvent } from '../kernel/flow-run.ts'
import { haveRuns, settledAgents } from './agent-leaves.ts'
import { beginAll, isAgentTask, isFunctionTask } from './begin-leaf.ts'
import type { ClaimedFlow } from './claim-flows.ts'
import type { Session } from './flow-session.ts'
import { nameOf } from './flow-standing.ts'
import { readHandouts } from './handouts.ts'
import { take } from './settle-leaf.ts'

/**
 * Takes up leaves that an earlier owner left to others: they are under way, or have ended since. A leaf that was
 * announced and never begun is begun now; where nothing may begin, it waits with the others.
 */
export async function takeUp(
  session: Session,
  events: FlowEvent[],
  { mayBegin }: { mayBegin: boolean },
): Promise<void> {
  const { standing, deps, flow, handedOut } = session
  const begun = standing.fresh.filter((task) => standing.begun.has(nameOf(task)))
  if (begun.length === 0) return
  const functions = begun.filter(isFunctionTask).map((task) => task.id)
  const handouts = await readHandouts(deps.pool, flow.id, functions)
  const queued = mayBegin ? null : await haveRuns(deps.pool, flow.id, begun.filter(isAgentTask))
  const elsewhere = begun.filter((task) =>
    isAgentTask(task) ? (queued?.has(task) ?? true) : handouts.has(nameOf(task)),
  )
  for (const task of elsewhere) {
    standing.running.set(task.id, task)
    standing.pools.resume(task)
  }
  standing.fresh = standing.fresh.filter((task) => !standing.running.has(task.id))
  // Inserting again inserts the missing runs: the owner that announced a leaf died before it queued them.
  if (mayBegin) await beginAll(session, elsewhere)
  else for (const task of elsewhere) if (isFunctionTask(task)) handedOut.add(task.id)
  await checkElsewhere(session, events)
}

interface News extends Pick<ClaimedFlow, 'ended_leaves' | 'workers' | 'wanted_topology' | 'is_topology_new'> {
  is_cancelled: boolean
}

/** Reads the outcomes of leaves that are under way elsewhere, and the changes that were asked for from outside. */
export async function checkElsewhere(session: Session, events: FlowEvent[]): Promise<void> {
  const { deps, flow, standing } = session
  const { rows } = await deps.pool.query<News>(
    `select ended_leaves, cancel_requested_at is not null as is_cancelled, workers, wanted_topology,
       topology_wanted_at is not null as is_topology_new from flow_runs where id = $1`,
    [flow.id],
  )
  session.seenLeaves = rows[0]?.ended_leaves ?? session.seenLeaves
  flow.workers = rows[0]?.workers ?? flow.workers
  if (rows[0]?.is_cancelled) session.mailbox.put({ type: 'stop', as: 'cancelled' })
  if (rows[0]?.is_topology_new) want(session, rows[0])
  await session.waits.check()
  const agents = [...standing.running.values()].filter(isAgentTask)
  const settled = [...(await settledAgents(deps.pool, flow.id, agents)), ...(await settledHandouts(session))]
  for (const { task, outcome } of settled) {
    take(session, events, task, outcome, standing.begun.get(nameOf(task)) ?? Date.now())
  }
}

async function settledHandouts({ deps, flow, standing, handedOut }: Session) {
  const handouts = await readHandouts(deps.pool, flow.id, [...handedOut])
  return [...handedOut].flatMap((id) => {
    const task = standing.running.get(id)
    const outcome = task && handouts.get(nameOf(task))?.outcome
    if (!task || !outcome) return []
    handedOut.delete(id)
    return [{ task, outcome }]
  })
}

/** Somebody has asked for another topology. */
export function want(
  session: Session,
  { wanted_topology: wanted, is_topology_new: isNew }: { wanted_topology: Topology | null; is_topology_new: boolean },
): void {
  if (wanted === null) return
  session.standing.pools.want(wanted, isNew)
  if (isNew) session.newTopology = wanted
}
