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
export type Progress = z.infer<typeof progressSchema>

export const flowRunSchema = z.strictObject({
  id: idField,
  flow_id: idField.nullable(),
  pattern: z.string().describe('The type of the root.'),
  status: z.enum(flowRunStatuses),
  input: z.unknown(),
  output: z.unknown(),
  results: z.record(z.string(), z.unknown()).describe('The result of each finished leaf that has an id.'),
  error: z.string().nullable(),
  progress: progressSchema,
  eta: instantField.nullable(),
  cancel_requested_at: instantField.nullable().describe('Leaves under way then may end; nothing new begins.'),
  workers: z.int(),
  usage: usageSchema.describe('Of its leaves that have ended, and of the calls that its functions muster.* have made.'),
  created_at: instantField,
  started_at: instantField.nullable(),
  completed_at: instantField.nullable(),
  duration: durationField.nullable(),
})
export type FlowRun = z.infer<typeof flowRunSchema>

/** The events of a flow's journal. The process that takes a flow over rebuilds its state from them alone. */
export type FlowEvent =
  | { kind: 'flow.started'; data: { input: unknown } }
  | {
      kind: 'task.started'
      data: {
        task_id: string
        name: string
        attempt: number
        /** The agent that carries out the task. */
        agent?: string
        /** The tasks that this one waited for, if the tree does not say. */
        after?: string[]
        worker?: string
        /** Set if the task was taken from the queue of another worker. */
        handover?: { from: string; to: string }
      }
    }
  | {
      kind: 'topology.switched'
      data: { pool: string; from: Topology; to: Topology; reason: string; moved: number; switch_ms: number }
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
        duration: number
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
      }
    }
  /** A page of items that a source function gave to a pattern. */
  | { kind: 'source.page'; data: { task_id: string; from: number; items: unknown[]; is_last: boolean } }
  | { kind: 'task.skipped'; data: { task_id: string } }
  /** The task is under way far longer than expected. */
  | { kind: 'task.slow'; data: { task_id: string; running_for: number } }
  /** People were told that the flow takes too long. The flow itself does not change. */
  | { kind: 'alert'; data: { alert_id: string; kind: 'slow'; suspected_cause: string } }
  /** The time of a pattern was up. */
  | { kind: 'node.expired'; data: { node: string } }
  | { kind: 'flow.completed' | 'flow.partial'; data: { output: unknown } }
  | { kind: 'flow.failed' | 'flow.cancelled' | 'flow.timed_out'; data: { error: string | null } }
