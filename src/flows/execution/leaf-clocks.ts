// Waits in the clocks of a flow run: the time of a part stands still while all running leaves in it wait, and that of a
// watched leaf while the leaf waits. The journal has the waits; a replay takes them from there.
import type { Db } from '../../db/pool.ts'
import { type ClaimedFlow, TIME_SO_FAR } from './claim.ts'
import { type OwnedFlow, readFlowJournal } from './owned-flow.ts'
import { type FlowState, stateOf } from './state.ts'

/** The clocks of the flow run by its journal; null if none of its leaves has waited. */
export async function readClocks({ deps, flow }: OwnedFlow): Promise<FlowState | null> {
  const { rowCount } = await deps.pool.query(
    `select from flow_events where run_id = $1 and kind = 'task.waiting' limit 1`,
    [flow.id],
  )
  if (rowCount === 0) return null
  const events = await readFlowJournal(deps.pool, flow.id)
  return stateOf({ ...flow, ...(await readAge(deps.pool, flow.id)) }, events, deps.patterns)
}

async function readAge(db: Db, flowRunId: string): Promise<Pick<ClaimedFlow, 'age' | 'claimed_at'> | null> {
  const { rows } = await db.query<Pick<ClaimedFlow, 'age' | 'claimed_at'>>(
    `select ${TIME_SO_FAR}, muster.now() as claimed_at from flow_runs r where r.id = $1`,
    [flowRunId],
  )
  return rows[0] ?? null
}
