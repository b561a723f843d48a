// A flow run that is cancelled does not drain what only waits: for a person, a provider, tokens or a tool. Such runs end
// at once, with their questions and their calls; nobody may approve a call of work that was called off.
import type { Db } from '../../db/pool.ts'
import type { LeafOutcome } from '../machine/machine.ts'
import { isFunctionLeaf } from './begin-leaf.ts'
import type { OwnedFlow } from './owned-flow.ts'
import { stopLeaves } from './stop-leaves.ts'

/** A leaf may begin to wait while the flow run drains. */
const LOOK_EVERY_MS = 1_000

export async function stopWaiting(owned: OwnedFlow): Promise<void> {
  const { deps, flow, state, mailbox, after } = owned
  const runIds = await waitingRuns(deps.pool, flow.id)
  if (runIds.length > 0) await deps.cancelRuns(flow.project_id, runIds)
  const asking = new Set(await waitingCalls(deps.pool, flow.id))
  const leaves = [...state.running.values()].filter((leaf) => isFunctionLeaf(leaf) && asking.has(leaf.id))
  if (leaves.length > 0) await stopLeaves(owned, leaves)
  const outcome: LeafOutcome = { status: 'failed', error: 'The flow was stopped while the task waited.' }
  for (const leaf of leaves) mailbox.put({ type: 'settled', leaf, outcome, startedAtMs: Date.now() })
  if (runIds.length > 0) mailbox.put({ type: 'news' })
  after(LOOK_EVERY_MS, { type: 'look_for_waits' })
}

/**
 * The runs at and below the leaves that wait, and below which nothing is at work. A run that waits for a flow run ends
 * with that flow run, which drains by itself.
 */
async function waitingRuns(db: Db, flowRunId: string): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>(
    `with recursive below (id) as (
       select id from agent_runs
       where flow_run_id = $1 and status in ('queued', 'running', 'paused') and completed_at is null
       union all
       select r.id from below b join agent_runs r on r.parent_run_id = b.id
       where r.status in ('queued', 'running', 'paused') and r.completed_at is null
     ), open_run as materialized (
       select r.id, r.ancestors, r.owner is not null or r.ready_at is not null
           or (r.started_flow_run_id is not null and r.open_children > 0) as is_at_work
       from below b join agent_runs r on r.id = b.id where r.cancel_requested_at is null
     )
     select o.id from open_run o
     where not o.is_at_work and not exists (select from open_run w where w.is_at_work and o.id = any(w.ancestors))`,
    [flowRunId],
  )
  return rows.map((row) => row.id)
}

/** The functions that wait for their model. */
async function waitingCalls(db: Db, flowRunId: string): Promise<string[]> {
  const { rows } = await db.query<{ task_id: string }>(
    'select distinct task_id from provider_waits where flow_run_id = $1 and task_id is not null and released_at is null',
    [flowRunId],
  )
  return rows.map((row) => row.task_id)
}
