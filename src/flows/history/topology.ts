// The topologies of a flow run as people read them, and their measurements, which are written when the run ends.
import { z } from 'zod'
import type { Db } from '../../db/pool.ts'
import { runNotFound } from '../../kernel/errors.ts'
import { durationField, instantField } from '../../kernel/fields.ts'
import { type FlowNode, type Topology, topologies } from '../../kernel/flow.ts'
import type { FlowEvent } from '../../kernel/flow-run.ts'
import type { NodeTopology, Patterns } from '../machine/pattern.ts'
import { topologiesIn } from '../machine/topologies.ts'
import { createEndedRuns } from './ended-runs.ts'
import { type FlowRunRow, flowHasEnded, readFlowRow } from './flow-runs.ts'
import { recommendTopology, type TopologyRecommendation } from './learn-topology.ts'
import { recordTopologies, type TopologyEvent } from './topology-record.ts'
import { readTopologyResults } from './topology-results.ts'

export const topologyField = z.enum(topologies)
const pool = z.string().optional().describe('The adaptive part, if the run has had several.')

export const flowTopologySchema = z.strictObject({
  current: topologyField
    .nullable()
    .describe('The topology of the adaptive part that began last; null if the flow has no adaptive part.'),
  history: z.array(
    z.strictObject({
      from: topologyField,
      to: topologyField,
      reason: z.string(),
      considered: z
        .array(z.strictObject({ topology: topologyField, estimate: z.number() }))
        .nullable()
        .describe('Other topologies, each with its expected throughput as a multiple of the present; null: asked for.'),
      at: instantField,
      switch_ms: durationField,
      moved: z.int().describe('The number of waiting leaves that were dealt anew.'),
      pool,
    }),
  ),
  handovers: z.array(z.strictObject({ task_id: z.string(), from: z.string(), to: z.string(), at: instantField, pool })),
  by_topology: z.partialRecord(
    topologyField,
    z.strictObject({
      tasks: z.int(),
      throughput: z.number().describe('Tasks per second.'),
      wait: durationField.describe('The average time for which a task waited to be taken.'),
      duration: durationField.describe('The average time from the moment a task was taken until it was done.'),
    }),
  ),
  recommendation: z
    .strictObject({ topology: topologyField, reason: z.string() })
    .nullable()
    .describe('The topology for later flows of this kind; null before three runs were measured.'),
})
export type FlowTopology = z.infer<typeof flowTopologySchema>

export async function readTopology(
  db: Db,
  projectId: string,
  runId: string,
  patterns: Patterns,
  ended = createEndedRuns(db),
): Promise<FlowTopology> {
  const run = await readFlowRow(db, projectId, runId)
  const { root, told, node } = await ended.fact('topology', run, () => topologyOf(db, run, patterns))
  const [first] = topologiesIn(root, patterns)
  return { ...told, recommendation: await recommend(db, run.project_id, node ?? first) }
}

/** All but the facts that are learned from other runs. */
async function topologyOf(db: Db, run: FlowRunRow, patterns: Patterns) {
  const { rows } = await db.query<{ root: FlowNode; wanted_topology: Topology | null; now: Date }>(
    'select root, wanted_topology, muster.now() as now from flow_runs where id = $1',
    [run.id],
  )
  if (!rows[0]) throw runNotFound()
  const { root, wanted_topology: wanted, now } = rows[0]
  const record = recordTopologies(root, await readEvents(db, run.id), flowHasEnded(run) ? null : now, patterns)
  const hasSeveral = record.parts.length > 1
  const named = (id: string | null) => (hasSeveral && id !== null ? { pool: id } : {})
  const told = {
    current: record.parts.at(-1)?.current ?? firstTopology(topologiesIn(root, patterns)[0], wanted),
    // Journals of earlier releases do not say what was considered.
    history: record.history.map(({ pool: id, at, considered = null, ...change }) => ({
      ...change,
      considered,
      at: at.toISOString(),
      ...named(id),
    })),
    handovers: record.handovers.map(({ pool: id, at, ...handover }) => ({
      ...handover,
      at: at.toISOString(),
      ...named(id),
    })),
    by_topology: record.byTopology,
  }
  return { root, told, node: record.parts.at(-1)?.node ?? null }
}

function firstTopology(first: NodeTopology | undefined, wanted: Topology | null): Topology | null {
  if (!first) return null
  return wanted && first.possible.includes(wanted) ? wanted : first.initial
}

async function recommend(
  db: Db,
  projectId: string,
  node: NodeTopology | undefined,
): Promise<TopologyRecommendation | null> {
  if (!node) return null
  const { workload, possible } = node
  return recommendTopology(workload, await readTopologyResults(db, projectId, [workload]), possible)
}

/** The measurements that end a run's journal, one for each kind of workload. `unwritten`: the events before them. */
export async function measuredTopologies(
  db: Db,
  run: { id: string; root: FlowNode },
  unwritten: readonly FlowEvent[],
  patterns: Patterns,
): Promise<FlowEvent[]> {
  if (topologiesIn(run.root, patterns).length === 0) return []
  const { rows } = await db.query<{ now: Date }>('select muster.now() as now')
  const at = rows[0]?.now ?? new Date()
  const last = unwritten.map((event) => ({ kind: event.kind, at, data: event.data as TopologyEvent['data'] })) // has these fields
  const { byWorkload } = recordTopologies(run.root, [...(await readEvents(db, run.id)), ...last], null, patterns)
  return byWorkload.map(({ workload, pool: id, byTopology }) => ({
    kind: 'topology.measured',
    data: { pool: id, workload, by_topology: byTopology },
  }))
}

async function readEvents(db: Db, runId: string): Promise<TopologyEvent[]> {
  const { rows } = await db.query<TopologyEvent>(
    `select kind, at, data - '{result,error,name,node_id}'::text[] as data from flow_events
     where run_id = $1 and kind = any('{task.started,task.completed,task.failed,task.skipped,topology.switched}')
     order by seq`,
    [runId],
  )
  return rows
}
