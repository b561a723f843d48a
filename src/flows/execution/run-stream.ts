// A pipeline as a leaf of a flow run: gives the pipeline all that it needs of the run's owner.
import type { Db, Pool } from '../../db/pool.ts'
import type { AppFunction } from '../../kernel/app.ts'
import { errorText } from '../../kernel/error-text.ts'
import type { AgentLeaf } from '../../kernel/flow.ts'
import { kindOf } from '../../kernel/kind-of.ts'
import type { Log } from '../../kernel/log.ts'
import type { FunctionContext } from '../definition/function-context.ts'
import type { FlowLeaf } from '../machine/flow-leaf.ts'
import type { LeafOutcome } from '../machine/machine.ts'
import { sourceLeaf } from '../machine/source.ts'
import type { PipelineProgress, PipelineSource, StageContext } from '../pipeline/parts.ts'
import type { PipelineEvent } from '../pipeline/pipeline-event.ts'
import { createRecordReader, earlierPipelines } from '../pipeline/read-record.ts'
import { runPipeline } from '../pipeline/run-pipeline.ts'
import { isAgain, type LeafRuns, stageRunIdOf, startStageRun } from './agent-leaves.ts'
import type { AgentWaits } from './agent-waits.ts'
import { callOnce } from './call-function.ts'
import { outcomeOfRun } from './leaf-outcomes.ts'
import { functionKey, leafScope } from './leaf-scope.ts'
import { openSource } from './open-source.ts'
import type { FlowDeps } from './owned-flow.ts'

export interface StreamParts extends LeafRuns {
  leaf: FlowLeaf & { stream: NonNullable<FlowLeaf['stream']> }
  pool: Pool
  log: Log
  functions: ReadonlyMap<string, AppFunction>
  /** The buffer between two stages, if the pipeline does not say. */
  buffer: number
  waits: AgentWaits
  signal: AbortSignal
  /** Fires when nothing new is to be begun. */
  draining: AbortSignal
  append: (events: PipelineEvent[]) => Promise<void>
  onProgress: (progress: PipelineProgress) => void
  cancelRuns: FlowDeps['cancelRuns']
  onReady: () => void
}

/** Rejects only if the flow's journal cannot be read or written. */
export async function runStream(parts: StreamParts): Promise<LeafOutcome> {
  const { leaf, flowRunId, scope, pool, signal, append, onProgress } = parts
  const { stream } = leaf
  const source = tryFor(() => sourceOf(parts))
  if ('problem' in source) return { status: 'failed', error: source.problem }
  const earlier = await earlierPipelines(pool, parts.flowRunIds, { flowRunId, leafId: leaf.id })
  return runPipeline({
    flowRunId,
    leafId: leaf.id,
    keyScope: leafScope(scope, leaf.id),
    hasEarlier: earlier.length > 0,
    node: stream,
    buffer: stream.buffer ?? parts.buffer,
    source,
    argumentOf: stream.argumentOf,
    append,
    read: createRecordReader(pool, { flowRunId, leafId: leaf.id }, earlier),
    signal,
    onProgress,
    draining: parts.draining,
    call: (stage, argument, context) => callStage(parts, stage, argument, context),
  })
}

/** A source that cannot be rendered fails the pipeline. */
function tryFor(find: () => PipelineSource | { problem: string }): PipelineSource | { problem: string } {
  try {
    return find()
  } catch (error) {
    return { problem: errorText(error) }
  }
}

function sourceOf({
  leaf,
  functions,
  flowRunId,
  scope,
  projectId,
  log,
}: StreamParts): PipelineSource | { problem: string } {
  const source = sourceLeaf(leaf.stream.source)
  const argument = leaf.argumentOf(0)
  if (!source)
    return Array.isArray(argument)
      ? { items: argument }
      : { problem: `source must be a list, and it is ${kindOf(argument)}.` }
  const name = source.function
  const run = functions.get(name)
  if (!run) return { problem: `There is no function called ${name}.` }
  const ofSource = `${leafScope(scope, leaf.id)}:source`
  const shared: Omit<FunctionContext, 'signal'> = {
    key: functionKey(ofSource, name, argument),
    scope: ofSource,
    attempt: 1,
    run_id: flowRunId,
    project_id: projectId,
    leafId: leaf.id,
    log,
    emit: () => {},
  }
  return { open: ({ signal }) => openSource({ name, run }, argument, { ...shared, signal }) }
}

async function callStage(
  parts: StreamParts,
  stage: number,
  argument: unknown,
  context: StageContext,
): Promise<LeafOutcome> {
  const { leaf, functions, flowRunId, projectId, log } = parts
  const node = leaf.stream.stages[stage]
  if (!node) return { status: 'failed', error: `There is no stage ${stage}.` }
  if ('agent' in node) return callAgent(parts, node, argument, context)
  const { key: ofItem, attempt, signal, clock } = context
  const { whileIdle } = clock
  const run = functions.get(node.function)
  if (!run) return { status: 'failed', error: `There is no function called ${node.function}.` }
  return callOnce(
    { name: node.function, run, scope: ofItem, attempt, signal, flowRunId, leafId: leaf.id, projectId, log, whileIdle },
    argument,
  )
}

async function callAgent(
  parts: StreamParts,
  node: AgentLeaf,
  input: unknown,
  { key, runKey, failures, signal, clock }: StageContext,
): Promise<LeafOutcome> {
  const { leaf, flowRunId, flowRunIds, scope, projectId, within, pool, waits, onReady } = parts
  const id = stageRunIdOf(runKey, failures)
  const again = failures > 0 || isAgain(leaf, parts)
  const run = { id, flowRunId, flowRunIds, scope, projectId, within, leafId: leaf.id, node, input, keyScope: key }
  const started = await waits.queue(() => startStageRun(pool, { ...run, isAgain: again }))
  if ('problem' in started) return { status: 'failed', error: started.problem }
  onReady()
  clock.lateIf(() => isUnbegun(pool, started.runId))
  cancelIfLate(parts, signal, started.runId)
  return outcomeOfRun(await waits.wait(started.runId))
}

/** True for a run that waits for a slot. Its own timeout begins when it has one. */
async function isUnbegun(db: Db, runId: string): Promise<boolean> {
  const { rows } = await db.query(
    `select from agent_runs where id = $1 and status = 'queued' and started_at is null and waiting_for is null`,
    [runId],
  )
  return rows.length === 1
}

/**
 * Cancels the run when the time of the stage is up. If the signal fires because the pipeline is stopped, its owner
 * decides about the run: the next owner may wait for it.
 */
function cancelIfLate(
  { cancelRuns, projectId, log, flowRunId }: StreamParts,
  signal: AbortSignal,
  runId: string,
): void {
  const cancel = (): void => {
    if (!isTimeout(signal.reason)) return
    cancelRuns(projectId, [runId]).catch((error: unknown) =>
      log.warn({ flow_run_id: flowRunId, run_id: runId, err: error }, 'the run of a late stage could not be cancelled'),
    )
  }
  if (signal.aborted) cancel()
  else signal.addEventListener('abort', cancel, { once: true })
}

const isTimeout = (reason: unknown): boolean => reason instanceof DOMException && reason.name === 'TimeoutError'
