import type { FlowEvent } from '../../kernel/flow-run.ts'

/** A pipeline's events in the flow's journal. Stages and items are counted from 0, items in the order of the source. */
export type PipelineEvent =
  /** An owner took up the pipeline. Every owner writes this event before it calls a function. */
  | { kind: 'pipeline.started'; data: { task_id: string; buffer: number } }
  /** The items that a function gave as the source. No item is worked on before this event holds it. */
  | Extract<FlowEvent, { kind: 'source.page' }>
  | { kind: 'items.completed'; data: { task_id: string; stage: number; results: [index: number, value: unknown][] } }
  /** The items were given up in this stage, and are left out of all later stages. */
  | { kind: 'items.skipped'; data: { task_id: string; stage: number; errors: [index: number, error: string][] } }
  /** One attempt failed. Another attempt is made, or the pipeline ends with this failure. */
  | {
      kind: 'item.failed'
      data: { task_id: string; stage: number; index: number; attempt: number; error: string; is_retried: boolean }
    }

export const pipelineEventKinds = [
  'pipeline.started',
  'source.page',
  'items.completed',
  'items.skipped',
  'item.failed',
] as const satisfies PipelineEvent['kind'][]

/** One thing that happened, before it is written in one event with others. */
export type Note =
  | { kind: 'read'; index: number; value: unknown }
  | { kind: 'all_read'; index: number }
  | { kind: 'completed'; stage: number; index: number; value: unknown }
  | { kind: 'skipped'; stage: number; index: number; error: string }
  | { kind: 'failed'; stage: number; index: number; attempt: number; error: string; isRetried: boolean }

/** Makes as few events as possible: one per stage for the completed items, and one for the read items. */
export function eventsOf(leafId: string, notes: readonly Note[]): PipelineEvent[] {
  const events: PipelineEvent[] = []
  const completed = new Map<number, [number, unknown][]>()
  const skipped = new Map<number, [number, string][]>()
  let page: { items: unknown[]; is_last: boolean } | null = null
  for (const note of notes) {
    switch (note.kind) {
      case 'read':
      case 'all_read':
        if (!page) {
          const data = { task_id: leafId, from: note.index, items: [], is_last: false }
          events.push({ kind: 'source.page', data })
          page = data
        }
        if (note.kind === 'read') page.items.push(note.value)
        else page.is_last = true
        break
      case 'completed':
        listOf(completed, note.stage, (results) => {
          events.push({ kind: 'items.completed', data: { task_id: leafId, stage: note.stage, results } })
        }).push([note.index, note.value])
        break
      case 'skipped':
        listOf(skipped, note.stage, (errors) => {
          events.push({ kind: 'items.skipped', data: { task_id: leafId, stage: note.stage, errors } })
        }).push([note.index, note.error])
        break
      case 'failed': {
        const { stage, index, attempt, error, isRetried } = note
        events.push({
          kind: 'item.failed',
          data: { task_id: leafId, stage, index, attempt, error, is_retried: isRetried },
        })
        break
      }
    }
  }
  return events
}

function listOf<Entry>(lists: Map<number, Entry[]>, stage: number, onNew: (list: Entry[]) => void): Entry[] {
  const known = lists.get(stage)
  if (known) return known
  const list: Entry[] = []
  lists.set(stage, list)
  onNew(list)
  return list
}
