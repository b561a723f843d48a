import { changeAudited } from '../../audit/record.ts'
import type { Db } from '../../db/pool.ts'
import { FLOW_CHANNEL, tellProcesses } from '../../journal/wake.ts'
import { conflict, invalidRequest } from '../../kernel/errors.ts'
import type { FlowNode, Topology } from '../../kernel/flow.ts'
import type { Actor } from '../../kernel/principal.ts'
import type { Patterns } from '../machine/pattern.ts'
import { topologiesIn } from '../machine/topologies.ts'

/**
 * Asks for another topology for the adaptive parts of a flow run. The wish is a fact in the database: the owner is
 * told; a run without an owner is made ready, so that a process takes it.
 */
export async function askForTopology(
  db: Db,
  projectId: string,
  flowRunId: string,
  { topology, actor, patterns }: { topology: Topology; actor: Actor; patterns: Patterns },
): Promise<void> {
  const { rows } = await db.query<{ root: FlowNode; status: string }>(
    'select root, status from flow_runs where id = $1 and project_id = $2',
    [flowRunId, projectId],
  )
  const parts = rows[0] ? topologiesIn(rows[0].root, patterns) : []
  if (parts.length === 0) throw conflict('The flow has no adaptive part: it has no topology to switch.')
  if (!parts.some(({ possible }) => possible.includes(topology))) {
    throw invalidRequest(`topology: ${topology} needs edges, and no adaptive part of the flow has edges.`)
  }
  const changed = await changeAudited<{ id: string }>(db, {
    sql: `update flow_runs set wanted_topology = $3, topology_wanted_at = muster.now(),
            ready_at = case when owner is null then least(ready_at, muster.now()) else ready_at end
          where id = $1 and project_id = $2 and completed_at is null returning id`,
    values: [flowRunId, projectId, topology],
    note: {
      action: 'flow.switch_topology',
      actor,
      projectId,
      targetType: 'flow_run',
      targetId: flowRunId,
      details: { topology },
    },
  })
  if (changed.length === 0)
    throw conflict(`The flow run is ${rows[0]?.status ?? 'over'}: its topology cannot be switched any more.`)
  await tellProcesses(db, FLOW_CHANNEL, flowRunId)
}

/** The status of the wish: in force, not yet taken up, or later than the end of the run. */
export async function statusOfWish(db: Db, flowRunId: string): Promise<'in force' | 'open' | 'too late'> {
  const { rows } = await db.query<{ is_open: boolean; has_ended: boolean }>(
    `select topology_wanted_at is not null as is_open, completed_at is not null as has_ended
     from flow_runs where id = $1`,
    [flowRunId],
  )
  if (!rows[0]?.is_open) return 'in force'
  return rows[0].has_ended ? 'too late' : 'open'
}
