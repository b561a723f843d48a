import type { LeafOutcome } from '../machine/machine.ts'
import type { Stream } from '../machine/pattern.ts'
import type { BoundedBuffer } from './bounded-buffer.ts'
import type { PipelineEvent } from './pipeline-event.ts'
import type { Item, PipelineState } from './pipeline-state.ts'
import type { Recorder } from './recorder.ts'
import type { StageClock } from './stage-clock.ts'

/** A list that can be read again, or a function whose items are journalled. */
export type PipelineSource =
  | { items: readonly unknown[] }
  /** Every owner calls the function until all items are on record, and passes over those that already are. */
  | { open: (context: { signal: AbortSignal }) => unknown }

export interface StageContext {
  /** The scope of the calls of this stage with this item, the same in every attempt. */
  key: string
  /** Names the calls of this stage with this item in this flow run alone. */
  runKey: string
  /** The attempts count from 1, and rise with every call: failed attempts and owners that died both count. */
  attempt: number
  /** The number of failed attempts before this one. A crash does not count. */
  failures: number
  /** Fires with a TimeoutError when the time of the stage is up. */
  signal: AbortSignal
  clock: Pick<StageClock, 'whileIdle' | 'lateIf'>
}

/** All recorded events of the pipeline in their order, page by page; or only the items that one stage completed. */
export type ReadRecord = (only?: { stage: number }) => AsyncIterable<PipelineEvent>

interface ItemCounts {
  /** The number of items, which grows while a function's items are read. */
  total: number
  completed: number
  failed: number
  skipped: number
}

export interface PipelineProgress {
  items: ItemCounts
  /** The number of items that each stage has completed. */
  stages: number[]
}

export interface PipelineParts {
  flowRunId: string
  /** The id of this attempt of the whole pipeline. An item on record under this id is never worked on again. */
  leafId: string
  /** The scope of the keys of its calls, the same in every life of the pipeline. */
  keyScope: string
  /** True if earlier lives of the pipeline have items on record. */
  hasEarlier?: boolean
  node: Pick<Stream, 'stages' | 'on_error'>
  /** The most items between two stages. */
  buffer: number
  source: PipelineSource
  argumentOf: (stage: number, item: unknown) => unknown
  call: (stage: number, argument: unknown, context: StageContext) => Promise<LeafOutcome>
  /** Resolves when the events are committed. If it rejects, nothing more is done. Calls do not overlap. */
  append: (events: PipelineEvent[]) => Promise<void>
  read: ReadRecord
  signal: AbortSignal
  /** Fires when nothing new is to be begun: calls under way may end, and then the pipeline ends. */
  draining?: AbortSignal
  /** Called once per append, after the commit. */
  onProgress?: (progress: PipelineProgress) => void
}

/** A pipeline in the hands of its owner. */
export interface UnderWay {
  parts: PipelineParts
  state: PipelineState
  recorder: Recorder
  /** The buffer before each stage, and a last buffer for results of the last stage that are not committed. */
  buffers: BoundedBuffer<Item>[]
  /** The functions to be called when the pipeline is over. */
  stops: Set<() => void>
  isOver: () => boolean
  isDraining: () => boolean
  /** Notes that a call has begun. The call is under way until the returned function is called. */
  begin: () => () => void
  /** Ends the pipeline with this outcome, once all notes are committed. Only the first call counts. */
  end: (outcome: LeafOutcome) => void
}

export function bufferAt({ buffers }: UnderWay, place: number): BoundedBuffer<Item> {
  const buffer = buffers[place]
  if (!buffer) throw new RangeError(`a pipeline of ${buffers.length - 1} stages has no buffer ${place}`)
  return buffer
}
