// The state of a pipeline, read from its journal. The values of finished items are not kept, so a long pipeline takes
// no more memory than a short one.
import type { PipelineEvent } from './pipeline-event.ts'

export interface Item {
  index: number
  value: unknown
}

interface StageState {
  /** The index after the last item that the stage is done with. */
  next: number
  completed: number
  /** Items that the stage before, or the source, has given and that this stage is not done with. */
  waiting: Item[]
  /** The number of times that the next item has failed in this stage. */
  failures: { index: number; count: number }
}

export interface PipelineState {
  stages: StageState[]
  /** Counts of a source whose items are on record. */
  source: { read: number; isAllRead: boolean }
  skipped: number
  /** The failure with which the pipeline has ended. */
  failure: { stage: number; index: number; error: string } | null
  /** By earlier owner and stage: items below this index may have been called, with no outcome on record. */
  reached: number[][]
}

export async function readPipelineState(
  stageCount: number,
  recorded: AsyncIterable<PipelineEvent>,
): Promise<PipelineState> {
  const state: PipelineState = {
    stages: Array.from({ length: stageCount }, () => ({
      next: 0,
      completed: 0,
      waiting: [],
      failures: { index: -1, count: 0 },
    })),
    source: { read: 0, isAllRead: false },
    skipped: 0,
    failure: null,
    reached: [],
  }
  let buffer: number | null = null
  for await (const event of recorded) {
    if (event.kind === 'pipeline.started') {
      if (buffer !== null) state.reached.push(reachOf(state, buffer))
      buffer = event.data.buffer
    }
    count(state, event)
    keep(state, event)
  }
  if (buffer !== null) state.reached.push(reachOf(state, buffer))
  return state
}

export function count(state: PipelineState, event: PipelineEvent): void {
  switch (event.kind) {
    case 'pipeline.started':
      return
    case 'source.page':
      state.source.read = event.data.from + event.data.items.length
      state.source.isAllRead = event.data.is_last
      return
    case 'items.completed': {
      const stage = state.stages[event.data.stage]
      if (!stage) return
      stage.completed += event.data.results.length
      for (const [index] of event.data.results) stage.next = Math.max(stage.next, index + 1)
      return
    }
    case 'items.skipped': {
      const stage = state.stages[event.data.stage]
      if (!stage) return
      state.skipped += event.data.errors.length
      for (const [index] of event.data.errors) stage.next = Math.max(stage.next, index + 1)
      return
    }
    case 'item.failed': {
      const { stage, index, error, is_retried } = event.data
      const failures = state.stages[stage]?.failures
      if (failures) Object.assign(failures, { index, count: failures.index === index ? failures.count + 1 : 1 })
      if (!is_retried) state.failure = { stage, index, error }
      return
    }
  }
}

/** Keeps the items that wait before a stage, and forgets the items that the stage is done with. */
function keep(state: PipelineState, event: PipelineEvent): void {
  if (event.kind === 'source.page') {
    const { from, items } = event.data
    state.stages[0]?.waiting.push(...items.map((value, place) => ({ index: from + place, value })))
  }
  if (event.kind === 'items.completed') {
    const results = event.data.results.map(([index, value]) => ({ index, value }))
    state.stages[event.data.stage + 1]?.waiting.push(...results)
  }
  if (event.kind === 'items.completed' || event.kind === 'items.skipped') {
    const stage = state.stages[event.data.stage]
    if (stage) stage.waiting = stage.waiting.filter((item) => item.index >= stage.next)
  }
}

/** A stage begins only items that the stage before has finished on record; the first, items that found a place. */
function reachOf({ stages, source }: PipelineState, buffer: number): number[] {
  const first = (stages[0]?.next ?? 0) + buffer
  const ofFirst = source.read > 0 ? Math.min(first, source.read) : first
  return stages.map((_, place) => (place === 0 ? ofFirst : (stages[place - 1]?.next ?? 0)))
}

/** The number of earlier owners that may have called the stage with the item. */
export const earlierCalls = ({ reached }: PipelineState, stage: number, index: number): number =>
  reached.filter((reach) => index < (reach[stage] ?? 0)).length

export function failuresOf({ stages }: PipelineState, stage: number, index: number): number {
  const failures = stages[stage]?.failures
  return failures?.index === index ? failures.count : 0
}
