// A pipeline: items go through stages in order, one worker per stage, with a bounded buffer between each two. A slow
// stage holds up the stages before it and in the end the source. To the machine the pipeline is one leaf. Each item in
// each stage is a unit of resume all the same: its result is in the journal before the next stage gets it, and the next
// owner rebuilds the state from the journal. Outputs are kept in the journal alone, so memory holds no more than the
// buffers.
import type { LeafOutcome } from '../machine/machine.ts'
import { createBoundedBuffer } from './bounded-buffer.ts'
import type { PipelineParts, PipelineProgress, UnderWay } from './parts.ts'
import { count, type Item, type PipelineState, readPipelineState } from './pipeline-state.ts'
import { readOutput } from './read-output.ts'
import { readSource } from './read-source.ts'
import { createRecorder } from './recorder.ts'
import { failureOf, workStage } from './work-stage.ts'

const ABORTED: LeafOutcome = { status: 'failed', error: 'aborted' }

/**
 * Completed with the results of the last stage in source order, without the skipped items. Rejects only if the record
 * cannot be read or written; the pipeline can be taken up again then.
 */
export async function runPipeline(parts: PipelineParts): Promise<LeafOutcome> {
  const { node, signal, append, read, leafId } = parts
  const state = await readPipelineState(node.stages.length, read())
  if (state.failure) return failureOf(node.stages, state.failure)
  if (signal.aborted) return ABORTED
  await append([{ kind: 'pipeline.started', data: { task_id: leafId, buffer: parts.buffer } }])
  parts.onProgress?.(progressOf(parts, state))

  const failure = await work(parts, state)
  if (failure) return failure
  const { values, isLarge } = await readOutput(read, node.stages.length - 1)
  return { status: 'completed', value: values, ...(isLarge && !parts.hasEarlier ? { onRecord: 'items' as const } : {}) }
}

/** Returns the reason if the pipeline ended before all items were done, else null. */
async function work(parts: PipelineParts, state: PipelineState): Promise<LeafOutcome | null> {
  const { node, signal, append, leafId } = parts
  const ended = Promise.withResolvers<LeafOutcome | null>()
  let isOver = false
  let isDraining = false
  let calls = 0
  const halt = (): void => {
    isOver = true
    for (const stop of run.stops) stop()
    run.stops.clear()
  }
  const lose = (error: unknown): void => {
    halt()
    ended.reject(error)
  }
  const recorder = createRecorder({
    leafId,
    append,
    onCommitted: (events) => {
      for (const event of events) count(state, event)
      parts.onProgress?.(progressOf(parts, state))
    },
    onLost: lose,
  })
  const run: UnderWay = {
    parts,
    state,
    recorder,
    buffers: [
      ...state.stages.map((stage) => createBoundedBuffer<Item>(parts.buffer, stage.waiting.splice(0))),
      createBoundedBuffer<Item>(parts.buffer),
    ],
    stops: new Set(),
    isOver: () => isOver,
    isDraining: () => isDraining,
    begin: () => {
      calls++
      return () => {
        calls--
        endWhenDrained()
      }
    },
    end: (outcome) => {
      if (isOver) return
      halt()
      recorder.committed().then(() => ended.resolve(outcome), ended.reject)
    },
  }
  const endWhenDrained = (): void => {
    if (isDraining && calls === 0) run.end(ABORTED)
  }
  const onAbort = (): void => run.end(ABORTED)
  const onDrain = (): void => {
    isDraining = true
    endWhenDrained()
  }
  signal.addEventListener('abort', onAbort, { once: true })
  parts.draining?.addEventListener('abort', onDrain, { once: true })
  if (signal.aborted) onAbort()
  if (parts.draining?.aborted) onDrain()
  // Some of these promises still wait when the pipeline is over. Nothing refers to them then, and they are collected.
  const moving = [readSource(run), ...node.stages.map((_, stage) => workStage(run, stage))]
  Promise.all(moving).then(() => {
    if (!isOver && !isDraining) ended.resolve(null)
  }, lose)
  try {
    return await ended.promise
  } finally {
    isOver = true
    signal.removeEventListener('abort', onAbort)
    parts.draining?.removeEventListener('abort', onDrain)
  }
}

function progressOf({ source }: PipelineParts, { stages, source: { read }, ...state }: PipelineState) {
  const progress: PipelineProgress = {
    items: {
      total: 'items' in source ? source.items.length : read,
      completed: stages.at(-1)?.completed ?? 0,
      failed: state.failure ? 1 : 0,
      skipped: state.skipped,
    },
    stages: stages.map((stage) => stage.completed),
  }
  return progress
}
