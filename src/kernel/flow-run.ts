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

/** Leaves, by what became of them. They always add up to the total, which may grow. */
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
    .describe('What goes through the pipelines of the flow.'),
})
export type Progress = z.infer<typeof progressSchema>

export const flowRunSchema = z.strictObject({
  id: idField,
  flow_id: idField.nullable(),
  pattern: z.string().describe('The type of the root.'),
  status: z.enum(flowRunStatuses),
  input: z.unknown(),
  output: z.unknown(),
  results: z.record(z.string(), z.unknown()).describe('What each finished leaf with an id gave.'),
  error: z.string().nullable(),
  progress: progressSchema,
  eta: instantField.nullable(),
  cancel_requested_at: instantField.nullable().describe('What is under way then may end; nothing new begins.'),
  workers: z.int(),
  usage: usageSchema.describe('Of its leaves that have ended, and of the calls that its functions muster.* have made.'),
  created_at: instantField,
  started_at: instantField.nullable(),
  completed_at: instantField.nullable(),
  duration: durationField.nullable(),
})
export type FlowRun = z.infer<typeof flowRunSchema>

/** What a flow's journal may say. Whoever takes a flow over rebuilds where it stands from nothing else. */
export type FlowEvent =
  | { kind: 'flow.started'; data: { input: unknown } }
  | {
      kind: 'task.started'
      data: {
        task_id: string
        name: string
        attempt: number
        /** The agent whose run it is. */
        agent?: string
        /** The tasks it waited for, where the tree does not say. */
        after?: string[]
        worker?: string
        /** Taken from the queue of another worker. */
        handover?: { from: string; to: string }
      }
    }
  | {
      kind: 'topology.switched'
      data: { pool: string; from: Topology; to: Topology; reason: string; moved: number; switch_ms: number }
    }
  /** At the end: how the work of one kind went under each topology. */
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
        /** The result is what the pages of this source hold, or the items that the last stage gave. */
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
  /** What a function gave of the things a pattern works on. */
  | { kind: 'source.page'; data: { task_id: string; from: number; items: unknown[]; is_last: boolean } }
  | { kind: 'task.skipped'; data: { task_id: string } }
  /** Under way far longer than was expected of it. */
  | { kind: 'task.slow'; data: { task_id: string; running_for: number } }
  /** People were told that it takes too long. Nothing follows from it. */
  | { kind: 'alert'; data: { alert_id: string; kind: 'slow'; suspected_cause: string } }
  /** The time of a pattern was up. */
  | { kind: 'node.expired'; data: { node: string } }
  | { kind: 'flow.completed' | 'flow.partial'; data: { output: unknown } }
  | { kind: 'flow.failed' | 'flow.cancelled' | 'flow.timed_out'; data: { error: string | null } }
