// The measurements that runs made of their topologies, and the choice that later flows of the same kind make by them.
import type { Db } from '../db/pool.ts'
import type { FlowNode } from '../kernel/flow.ts'
import type { FlowEvent } from '../kernel/flow-run.ts'
import { recommendTopology, type TopologyResult } from './learn-topology.ts'
import { adaptiveNodes, mapAdaptive, possibleTopologies, workloadOf } from './topology-workload.ts'

type Measured = Extract<FlowEvent, { kind: 'topology.measured' }>['data']

/** The newest runs say enough, and show the machine as it is now. */
const MOST_RUNS = 50

/** The measurements of the project's completed runs with these workloads. */
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
      ...{ runId: run_id, workload, throughput, wait, duration },
      topology: topology as TopologyResult['topology'], // as the owner of that run wrote it
    })),
  )
}

/** The tree in which parts that leave their topology open have the one that did best so far, where that is known. */
export async function withLearntTopologies(db: Db, projectId: string, root: FlowNode): Promise<FlowNode> {
  const open = adaptiveNodes(root).filter((node) => node.topology === undefined)
  if (open.length === 0) return root
  const results = await readTopologyResults(db, projectId, [...new Set(open.map(workloadOf))])
  if (results.length === 0) return root
  return mapAdaptive(root, (node) => {
    if (node.topology !== undefined) return node
    const learnt = recommendTopology(workloadOf(node), results, possibleTopologies(node))
    return learnt ? { ...node, topology: learnt.topology } : node
  })
}
