import type { Pipeline } from '../../kernel/flow.ts'
import type { LeafOutcome } from '../machine.ts'
import type { BoundedBuffer } from './bounded-buffer.ts'
import type { PipelineEvent } from './pipeline-event.ts'
import type { Item, PipelineStanding } from './pipeline-standing.ts'
import type { Recorder } from './recorder.ts'

/** A list that can be had again, or a function that gives a list or something to iterate, whose items go on record. */
export type PipelineSource =
  | { items: readonly unknown[] }
  /**
   * Called by every owner until all is on record. The answer begins with the first item; what is on record is passed
   * over.
   */
  | { open: (context: { signal: AbortSignal }) => unknown }

export interface StageContext {
  /** The same however often this stage is called with this item. */
  key: string
  /** From 1, and higher in every call with this key: failures and owners that died both raise it. */
  attempt: number
  /** Failed attempts before this one. The same after a crash. */
  failures: number
  signal: AbortSignal
}

/** Everything on record about the pipeline in its order, page by page; or no more than what one stage completed. */
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
  /** Items that each stage has completed. */
  stages: number[]
}

export interface PipelineParts {
  flowRunId: string
  /** Another one for another attempt of the whole: what is on record under it is never done again. */
  taskId: string
  node: Pick<Pipeline, 'stages' | 'on_error'>
  /** Items between two stages at most. */
  buffer: number
  source: PipelineSource
  argumentOf: (stage: number, item: unknown) => unknown
  call: (stage: number, argument: unknown, context: StageContext) => Promise<LeafOutcome>
  /** Resolves when they are committed. Where it rejects nothing more is done. Never called while one is under way. */
  append: (events: PipelineEvent[]) => Promise<void>
  read: ReadRecord
  signal: AbortSignal
  /** Fires when nothing new is to be begun: what is under way may end, and the pipeline with it. */
  draining?: AbortSignal
  /** Told of what is committed, once per append. */
  onProgress?: (progress: PipelineProgress) => void
}

/** A pipeline in the hands of its owner. */
export interface UnderWay {
  parts: PipelineParts
  standing: PipelineStanding
  recorder: Recorder
  /** The one before each stage, and last one for what the last stage gave and is not committed. */
  buffers: BoundedBuffer<Item>[]
  /** What must be stopped when the pipeline is over. */
  stops: Set<() => void>
  isOver: () => boolean
  isDraining: () => boolean
  /** A call is under way until what it answers is called. */
  begin: () => () => void
  /** Ends the pipeline with this, once what is noted is committed. Only the first counts. */
  end: (outcome: LeafOutcome) => void
}

export function bufferAt({ buffers }: UnderWay, place: number): BoundedBuffer<Item> {
  const buffer = buffers[place]
  if (!buffer) throw new RangeError(`a pipeline of ${buffers.length - 1} stages has no buffer ${place}`)
  return buffer
}

export const messageOf = (thrown: unknown): string =>
  thrown instanceof Error ? thrown.message || thrown.name : String(thrown)
