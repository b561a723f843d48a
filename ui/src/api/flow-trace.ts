// Shapes of the trace of a flow run, apart from the calls, so that pure code can name them.
import type { Run } from '../../../src/kernel/run.ts'

/** A task of a flow run as GET …/trace tells it. */
export interface FlowTask {
  id: string
  name: string
  kind: 'agent' | 'function'
  parent_id: string | null
  depends_on: string[]
  worker: string | null
  status: 'pending' | 'running' | 'completed' | 'failed' | 'skipped'
  attempts: number
  start_at: string | null
  end_at: string | null
  usage: Run['usage'] | null
  run_id: string | null
  error: string | null
  skipped?: { index: number; stage: string | number; error: string }[]
}

export interface FlowTrace {
  tasks: FlowTask[]
  /** With task.waiting and task.continued, `run_id` is the run that waits, or goes on. */
  timeline: { at: string; event: string; task_id: string | null; run_id?: string }[]
}
