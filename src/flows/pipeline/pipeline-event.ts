/** A pipeline's events in the flow's journal. Stages and items are counted from 0, items in the order of the source. */
export type PipelineEvent =
  /** An owner took the pipeline up. Every owner writes this before anything is called. */
  | { kind: 'pipeline.started'; data: { task_id: string; buffer: number } }
  /** The items that a function gave as the source: no item is worked on before it stands here. */
  | { kind: 'source.page'; data: { task_id: string; from: number; items: unknown[]; is_last: boolean } }
  | { kind: 'items.completed'; data: { task_id: string; stage: number; results: [index: number, value: unknown][] } }
  /** The items were given up in this stage, and are left out of all later stages. */
  | { kind: 'items.skipped'; data: { task_id: string; stage: number; errors: [index: number, error: string][] } }
  /** One attempt failed. It is made again, or the pipeline ends with it. */
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

/** One thing that happened, before it is written together with others. */
export type Note =
  | { kind: 'read'; index: number; value: unknown }
  | { kind: 'all_read'; index: number }
  | { kind: 'completed'; stage: number; index: number; value: unknown }
  | { kind: 'skipped'; stage: number; index: number; error: string }
  | { kind: 'failed'; stage: number; index: number; attempt: number; error: string; isRetried: boolean }

/** As few events as possible: one per stage for the completed items, one for the read items. */
export function eventsOf(taskId: string, notes: readonly Note[]): PipelineEvent[] {
  const events: PipelineEvent[] = []
  const completed = new Map<number, [number, unknown][]>()
  const skipped = new Map<number, [number, string][]>()
  let page: { items: unknown[]; is_last: boolean } | null = null
  for (const note of notes) {
    switch (note.kind) {
      case 'read':
      case 'all_read':
        if (!page) {
          const data = { task_id: taskId, from: note.index, items: [], is_last: false }
          events.push({ kind: 'source.page', data })
          page = data
        }
        if (note.kind === 'read') page.items.push(note.value)
        else page.is_last = true
        break
      case 'completed':
        listOf(completed, note.stage, (results) => {
          events.push({ kind: 'items.completed', data: { task_id: taskId, stage: note.stage, results } })
        }).push([note.index, note.value])
        break
      case 'skipped':
        listOf(skipped, note.stage, (errors) => {
          events.push({ kind: 'items.skipped', data: { task_id: taskId, stage: note.stage, errors } })
        }).push([note.index, note.error])
        break
      case 'failed': {
        const { stage, index, attempt, error, isRetried } = note
        events.push({
          kind: 'item.failed',
          data: { task_id: taskId, stage, index, attempt, error, is_retried: isRetried },
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
