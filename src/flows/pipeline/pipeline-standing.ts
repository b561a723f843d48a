// The state of a pipeline, from its journal: the progress of each stage, and the items that wait before it. The values
// of items that are through are not kept, so a long pipeline takes no more memory than a short one.
import type { PipelineEvent } from './pipeline-event.ts'

export interface Item {
  index: number
  value: unknown
}

export interface StageStanding {
  /** The item after the last that the stage is done with. */
  next: number
  completed: number
  /** Items that the stage before has given, or the source, and that are not done here. */
  waiting: Item[]
  /** The number of times that the next item has failed here. */
  failures: { index: number; count: number }
}

export interface PipelineStanding {
  stages: StageStanding[]
  /** Counts of a source whose items are on record. */
  source: { read: number; isAllRead: boolean }
  skipped: number
  /** The pipeline has ended with this failure. */
  failure: { stage: number; index: number; error: string } | null
  /** For each earlier owner, by stage: it may have called the stage with items below, with no outcome on record. */
  reached: number[][]
}

export async function standingOf(
  stageCount: number,
  recorded: AsyncIterable<PipelineEvent>,
): Promise<PipelineStanding> {
  const standing: PipelineStanding = {
    stages: Array.from({ length: stageCount }, () => ({
      ...{ next: 0, completed: 0, waiting: [], failures: { index: -1, count: 0 } },
    })),
    source: { read: 0, isAllRead: false },
    skipped: 0,
    failure: null,
    reached: [],
  }
  let buffer: number | null = null
  for await (const event of recorded) {
    if (event.kind === 'pipeline.started') {
      if (buffer !== null) standing.reached.push(reachOf(standing, buffer))
      buffer = event.data.buffer
    }
    count(standing, event)
    keep(standing, event)
  }
  if (buffer !== null) standing.reached.push(reachOf(standing, buffer))
  return standing
}

/** Adds a committed event to the counts. */
export function count(standing: PipelineStanding, event: PipelineEvent): void {
  switch (event.kind) {
    case 'pipeline.started':
      return
    case 'source.page':
      standing.source.read = event.data.from + event.data.items.length
      standing.source.isAllRead = event.data.is_last
      return
    case 'items.completed': {
      const stage = standing.stages[event.data.stage]
      if (!stage) return
      stage.completed += event.data.results.length
      for (const [index] of event.data.results) stage.next = Math.max(stage.next, index + 1)
      return
    }
    case 'items.skipped': {
      const stage = standing.stages[event.data.stage]
      if (!stage) return
      standing.skipped += event.data.errors.length
      for (const [index] of event.data.errors) stage.next = Math.max(stage.next, index + 1)
      return
    }
    case 'item.failed': {
      const { stage, index, error, is_retried } = event.data
      const failures = standing.stages[stage]?.failures
      if (failures) Object.assign(failures, { index, count: failures.index === index ? failures.count + 1 : 1 })
      if (!is_retried) standing.failure = { stage, index, error }
      return
    }
  }
}

/** Keeps the items that wait before a stage, and forgets those that it is done with. */
function keep(standing: PipelineStanding, event: PipelineEvent): void {
  if (event.kind === 'source.page') {
    const { from, items } = event.data
    standing.stages[0]?.waiting.push(...items.map((value, place) => ({ index: from + place, value })))
  }
  if (event.kind === 'items.completed') {
    const results = event.data.results.map(([index, value]) => ({ index, value }))
    standing.stages[event.data.stage + 1]?.waiting.push(...results)
  }
  if (event.kind === 'items.completed' || event.kind === 'items.skipped') {
    const stage = standing.stages[event.data.stage]
    if (stage) stage.waiting = stage.waiting.filter((item) => item.index >= stage.next)
  }
}

/** A stage begins no item that the stage before has not finished on record, and the first only as many as find a place. */
function reachOf({ stages, source }: PipelineStanding, buffer: number): number[] {
  const first = (stages[0]?.next ?? 0) + buffer
  const ofFirst = source.read > 0 ? Math.min(first, source.read) : first
  return stages.map((_, place) => (place === 0 ? ofFirst : (stages[place - 1]?.next ?? 0)))
}

/** The number of earlier owners that may have called the stage with the item. */
export const earlierCalls = ({ reached }: PipelineStanding, stage: number, index: number): number =>
  reached.filter((reach) => index < (reach[stage] ?? 0)).length

/** The recorded failures of the item in the stage. */
export function failuresOf({ stages }: PipelineStanding, stage: number, index: number): number {
  const failures = stages[stage]?.failures
  return failures?.index === index ? failures.count : 0
}
