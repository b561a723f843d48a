// A pipeline as a leaf of a flow run: puts together what the pipeline needs of the run's owner.
import type { Pool } from '../db/pool.ts'
import type { AppFunction } from '../kernel/app.ts'
import { idFrom } from '../kernel/id.ts'
import type { Log } from '../kernel/log.ts'
import { insertAgentRun } from './agent-leaves.ts'
import type { AgentWaits } from './agent-waits.ts'
import { callOnce } from './call-function.ts'
import type { LeafOutcome, LeafTask } from './machine.ts'
import { sourceLeaf } from './patterns/map-reduce.ts'
import { messageOf, type PipelineProgress, type PipelineSource, type StageContext } from './pipeline/parts.ts'
import type { PipelineEvent } from './pipeline/pipeline-event.ts'
import { createRecordReader } from './pipeline/read-record.ts'
import { runPipeline } from './pipeline/run-pipeline.ts'

export interface StreamParts {
  task: LeafTask & { stream: NonNullable<LeafTask['stream']> }
  flowRunId: string
  projectId: string
  pool: Pool
  log: Log
  functions: ReadonlyMap<string, AppFunction>
  /** The buffer between two stages, where the pipeline does not say. */
  buffer: number
  waits: AgentWaits
  signal: AbortSignal
  /** Nothing new is to be begun. */
  draining: AbortSignal
  append: (events: PipelineEvent[]) => Promise<void>
  onProgress: (progress: PipelineProgress) => void
  /** A run was queued. */
  onReady: () => void
}

/** Rejects only where the flow's journal cannot be read or written. */
export async function runStream(parts: StreamParts): Promise<LeafOutcome> {
  const { task, flowRunId, pool, signal, append, onProgress } = parts
  const { node, argumentOf } = task.stream
  const source = tryFor(() => sourceOf(parts))
  if ('problem' in source) return { status: 'failed', error: source.problem }
  return runPipeline({
    ...{ flowRunId, taskId: task.id, node, buffer: node.buffer ?? parts.buffer, source, argumentOf },
    ...{ append, read: createRecordReader(pool, flowRunId, task.id), signal, onProgress },
    draining: parts.draining,
    call: (stage, argument, context) => callStage(parts, stage, argument, context),
  })
}

/** A source that cannot be rendered is the pipeline's problem. */
function tryFor(find: () => PipelineSource | { problem: string }): PipelineSource | { problem: string } {
  try {
    return find()
  } catch (error) {
    return { problem: messageOf(error) }
  }
}

function sourceOf({ task, functions, flowRunId, projectId, log }: StreamParts): PipelineSource | { problem: string } {
  const leaf = sourceLeaf(task.stream.node.source)
  const argument = task.argumentOf(0)
  if (!leaf) return Array.isArray(argument) ? { items: argument } : { problem: 'source is no list.' }
  const name = 'function' in leaf ? leaf.function : ''
  const run = functions.get(name)
  if (!run) return { problem: `There is no function called ${name}.` }
  const shared = { key: `${flowRunId}:${task.id}:source`, attempt: 1, run_id: flowRunId, project_id: projectId }
  return { open: ({ signal }) => run(argument as never, { ...shared, signal, log, emit: () => {} }) } // its author's word
}

async function callStage(
  { task, functions, flowRunId, projectId, pool, log, waits, onReady }: StreamParts,
  stage: number,
  argument: unknown,
  { key, attempt, failures, signal }: StageContext,
): Promise<LeafOutcome> {
  const leaf = task.stream.node.stages[stage]
  if (!leaf) return { status: 'failed', error: `There is no stage ${stage}.` }
  if ('agent' in leaf) {
    // Failures survive a crash and attempts do not: the same attempt is the same run.
    const id = idFrom(`flow ${key} ${failures}`)
    const problem = await insertAgentRun(pool, { id, flowRunId, projectId, taskId: task.id, leaf, input: argument })
    if (problem) return { status: 'failed', error: problem }
    onReady()
    const { status, summary, errorMessage } = await waits.wait(id)
    if (status === 'completed') return { status, value: summary ?? '' }
    return { status: 'failed', error: errorMessage ?? `The run ${id} is ${status}.` }
  }
  const run = functions.get(leaf.function)
  if (!run) return { status: 'failed', error: `There is no function called ${leaf.function}.` }
  return callOnce({ name: leaf.function, run, key, attempt, signal, flowRunId, projectId, log }, argument)
}
