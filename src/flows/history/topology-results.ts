// The measurements that runs made of their topologies, and the choice of a topology for later flows of the same kind.
import type { Db } from '../../db/pool.ts'
import type { FlowNode } from '../../kernel/flow.ts'
import type { FlowEvent } from '../../kernel/flow-run.ts'
import type { Patterns } from '../machine/pattern.ts'
import { topologiesIn, withTopologies } from '../machine/topologies.ts'
import { recommendTopology, type TopologyResult } from './learn-topology.ts'

type Measured = Extract<FlowEvent, { kind: 'topology.measured' }>['data']

/** The newest runs suffice, and show the present state of the machine. */
const MOST_RUNS = 50

export async function readTopologyResults(
  db: Db,
  projectId: string,
  workloads: readonly string[],
): Promise<TopologyResult[]> {
  if (workloads.length === 0) return []
  const { rows } = await db.query<{ run_id: string; data: Measured }>(
    `select measured.run_id, measured.data from unnest($2::text[]) as wanted (workload) cross join lateral (
       select e.run_id, e.data from flow_events e join flow_runs r on r.id = e.run_id
       where e.kind = 'topology.measured' and e.data->>'workload' = wanted.workload
         and r.project_id = $1 and r.status = 'completed'
       order by e.at desc limit $3
     ) measured`,
    [projectId, workloads, MOST_RUNS],
  )
  return rows.flatMap(({ run_id, data: { workload, by_topology } }) =>
    Object.entries(by_topology).map(([topology, { throughput, wait, duration }]) => ({
      runId: run_id,
      workload,
      throughput,
      wait,
      duration,
      topology: topology as TopologyResult['topology'], // as the owner of that run wrote it
    })),
  )
}

/** The tree in which parts that leave their topology open get the one that did best so far, if that is known. */
export async function withLearntTopologies(
  db: Db,
  projectId: string,
  root: FlowNode,
  patterns: Patterns,
): Promise<FlowNode> {
  const open = topologiesIn(root, patterns).filter(({ chosen }) => chosen === undefined)
  if (open.length === 0) return root
  const results = await readTopologyResults(db, projectId, [...new Set(open.map(({ workload }) => workload))])
  if (results.length === 0) return root
  return withTopologies(root, patterns, ({ chosen, workload, possible }) =>
    chosen === undefined ? (recommendTopology(workload, results, possible)?.topology ?? null) : null,
  )
}
