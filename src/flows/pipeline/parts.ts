import type { Pipeline } from '../../kernel/flow.ts'
import type { LeafOutcome } from '../machine.ts'
import type { BoundedBuffer } from './bounded-buffer.ts'
import type { PipelineEvent } from './pipeline-event.ts'
import type { Item, PipelineStanding } from './pipeline-standing.ts'
import type { Recorder } from './recorder.ts'

/** A list that can be had again, or a function whose items are journalled; the function gives a list or an iterable. */
export type PipelineSource =
  | { items: readonly unknown[] }
  /**
   * Every owner calls the function until all items are on record. The answer begins with the first item; items that are
   * on record already are passed over.
   */
  | { open: (context: { signal: AbortSignal }) => unknown }

export interface StageContext {
  /** Every call of this stage with this item has the same key. */
  key: string
  /** From 1, and higher in every call with this key: failed attempts and owners that died both raise it. */
  attempt: number
  /** The number of failed attempts before this one. A crash does not change it. */
  failures: number
  signal: AbortSignal
}

/** All recorded events of the pipeline in their order, page by page; or only the items that one stage completed. */
export type ReadRecord = (only?: { stage: number }) => AsyncIterable<PipelineEvent>

export interface ItemCounts {
  /** Grows while a function's items are read. */
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
  /** Another attempt of the whole pipeline has another id: an item on record under this id is never worked on again. */
  taskId: string
  node: Pick<Pipeline, 'stages' | 'on_error'>
  /** The most items between two stages. */
  buffer: number
  source: PipelineSource
  argumentOf: (stage: number, item: unknown) => unknown
  call: (stage: number, argument: unknown, context: StageContext) => Promise<LeafOutcome>
  /** Resolves when the events are committed. If it rejects, nothing more is done. Calls do not overlap. */
  append: (events: PipelineEvent[]) => Promise<void>
  read: ReadRecord
  signal: AbortSignal
  /** Fires when nothing new is to be begun: calls under way may end, and the pipeline with them. */
  draining?: AbortSignal
  /** Called once per append, after the commit. */
  onProgress?: (progress: PipelineProgress) => void
}

/** A pipeline in the hands of its owner. */
export interface UnderWay {
  parts: PipelineParts
  standing: PipelineStanding
  recorder: Recorder
  /** The buffer before each stage, and a last one for results of the last stage that are not committed. */
  buffers: BoundedBuffer<Item>[]
  /** The things to be stopped when the pipeline is over. */
  stops: Set<() => void>
  isOver: () => boolean
  isDraining: () => boolean
  /** A call begins; it is under way until the answered function is called. */
  begin: () => () => void
  /** Ends the pipeline with this outcome, once all notes are committed. Only the first call counts. */
  end: (outcome: LeafOutcome) => void
}

export function bufferAt({ buffers }: UnderWay, place: number): BoundedBuffer<Item> {
  const buffer = buffers[place]
  if (!buffer) throw new RangeError(`a pipeline of ${buffers.length - 1} stages has no buffer ${place}`)
  return buffer
}

export const messageOf = (thrown: unknown): string =>
  thrown instanceof Error ? thrown.message || thrown.name : String(thrown)
