import { z } from 'zod'
import { durationField, idField, instantField } from './fields.ts'
import type { Topology } from './flow.ts'
import { usageSchema } from './run.ts'

export const flowRunStatuses = [
  'queued',
  'running',
  'completed',
  'partial',
  'failed',
  'cancelled',
  'timed_out',
] as const
export type FlowRunStatus = (typeof flowRunStatuses)[number]

/** The number of leaves by state. The numbers always add up to the total, which may grow. */
export const progressSchema = z.strictObject({
  total: z.int(),
  pending: z.int(),
  running: z.int(),
  completed: z.int(),
  failed: z.int(),
  skipped: z.int(),
  items: z
    .strictObject({ total: z.int(), completed: z.int(), failed: z.int(), skipped: z.int() })
    .optional()
    .describe('The items in the pipelines of the flow.'),
})
export type FlowProgress = z.infer<typeof progressSchema>

export const flowRunSchema = z.strictObject({
  id: idField,
  flow_id: idField.nullable(),
  resumed_from: idField.nullable().describe('The flow run whose finished leaves this one has taken over.'),
  resumed_as: idField.nullable().describe('The flow run that resumes this one.'),
  parent_run_id: idField.nullable().describe('The run of an agent that is a flow, which started this flow run.'),
  pattern: z.string().describe('The type of the root.'),
  status: z.enum(flowRunStatuses),
  input: z.unknown(),
  output: z.unknown(),
  results: z.record(z.string(), z.unknown()).describe('The result of each finished leaf that has an id.'),
  error: z.string().nullable(),
  progress: progressSchema,
  waiting: z.int().describe('The running leaves that wait now, for a person, a provider, a tool or tokens.'),
  eta: instantField.nullable().describe('Null if it is unknown, and while a leaf waits for a person.'),
  cancel_requested_at: instantField
    .nullable()
    .describe('From this time on no new leaf starts; leaves under way may end.'),
  workers: z.int(),
  timeout: durationField.describe('The time the run has, from its start.'),
  usage: usageSchema.describe(
    'Of the runs of its leaves that have ended, sub-runs included, and of the calls that its functions muster.* have made.',
  ),
  last_seq: z.int().describe('The last event in the journal; as Last-Event-ID it gives the events after this answer.'),
  created_at: instantField,
  started_at: instantField.nullable(),
  completed_at: instantField.nullable(),
  duration: durationField.nullable(),
})
export type FlowRun = z.infer<typeof flowRunSchema>

/** A topology with its expected throughput, as a multiple of that of the present one. */
export interface ConsideredTopology {
  topology: Topology
  estimate: number
}

/** The events of a flow's journal, from which another process rebuilds its state. Items: pipeline/pipeline-event.ts. */
export type FlowEvent =
  | { kind: 'flow.started'; data: { input: unknown } }
  /** Somebody changed the timeout or the workers. The run's row holds them; this event may come before the start. */
  | { kind: 'flow.adjusted'; data: { timeout: number; workers: number | null } }
  | {
      kind: 'task.started'
      data: {
        task_id: string
        name: string
        attempt: number
        agent?: string
        /** The tasks that this one waited for, if the tree does not show them. */
        after?: string[]
        worker?: string
        /** Set if the task was taken from the queue of another worker. */
        handover?: { from: string; to: string }
      }
    }
  | {
      kind: 'topology.switched'
      data: {
        pool: string
        from: Topology
        to: Topology
        reason: string
        /** The topologies that were compared with the present one; null if somebody asked for the switch. */
        considered: ConsideredTopology[] | null
        moved: number
        switch_ms: number
      }
    }
  /** Written at the end: the figures of one kind of work under each topology. */
  | {
      kind: 'topology.measured'
      data: {
        pool: string
        workload: string
        by_topology: Partial<Record<Topology, { tasks: number; throughput: number; wait: number; duration: number }>>
      }
    }
  | {
      kind: 'task.completed'
      data: {
        task_id: string
        node_id: string | null
        attempt: number
        result: unknown
        /** Set if the result is in other events: the pages of this source, or the items of the last stage. */
        on_record?: 'pages' | 'items'
        /** Set if the result is one of a list: the list that it belongs to, and its place there, from 0. */
        part?: { of: string; place: number }
        duration: number
        /** The calls of the function in their order. Without arguments where these are large. */
        called?: { function: string; keys: readonly string[]; args?: readonly unknown[]; is_list?: true }
        /** The outcome is that of an earlier life of the leaf, or of the flow run that this one resumes. */
        taken_over?: true
      }
    }
  | {
      kind: 'task.failed'
      data: {
        task_id: string
        node_id: string | null
        attempt: number
        error: string
        duration: number
        /** The calls with an effect that the agent has made, one a line. */
        made?: string
      }
    }
  | { kind: 'source.page'; data: { task_id: string; from: number; items: unknown[]; is_last: boolean } }
  | { kind: 'task.skipped'; data: { task_id: string } }
  /** A run of the task, or a run below that one, waits for a person; `continued` says that the run waits no longer. */
  | { kind: 'task.waiting' | 'task.continued'; data: { task_id: string; run_id: string; waiting_for?: string } }
  /** The task is under way far longer than expected. */
  | { kind: 'task.slow'; data: { task_id: string; running_for: number } }
  /** People were told that the flow takes too long. The flow itself does not change. */
  | { kind: 'alert'; data: { alert_id: string; kind: 'slow'; suspected_cause: string } }
  | { kind: 'node.expired'; data: { node: string } }
  | { kind: 'flow.completed' | 'flow.partial'; data: { output: unknown } }
  | { kind: 'flow.failed' | 'flow.cancelled' | 'flow.timed_out'; data: { error: string | null } }
