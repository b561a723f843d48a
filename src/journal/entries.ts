import { newId } from '../kernel/id.ts'
import { cleanJson } from './clean-json.ts'
import type { Entry, EntryEvent } from './entry.ts'
import type { RunChange } from './run-change.ts'

export interface NewEvent {
  kind: string
  data: Readonly<Record<string, unknown>>
}

export interface Append<Change = RunChange> {
  runId: string
  /** The owner's fence; null for facts from outside (a cancel, an answer), which never change ownership. */
  fence: number | null
  events: readonly NewEvent[]
  /** The changes of the run's row that the events bring. */
  change?: Change
  /** The ancestors, from the top to the parent. The events appear in their journals too. */
  ancestors?: readonly string[]
}

/** An event of a journal. `data` is JSON text; an event of a sub-run names the sub-run in `run_id`. */
export interface StoredEvent {
  runId: string
  seq: number
  kind: string
  data: string
  at: Date
}

export interface Prepared<Change = RunChange> {
  runId: string
  fence: number | null
  events: { id: string; kind: string; data: string }[]
  change: Change | undefined
  ancestors: readonly string[]
  size: number
}

/** The approximate size that an event adds to the journal of an ancestor. */
const REFERENCE = 150
const NONE: readonly string[] = []

export function prepare<Change>({ runId, fence, events, change, ancestors = NONE }: Append<Change>): Prepared<Change> {
  const prepared: Prepared<Change> = { runId, fence, events: [], change, ancestors, size: 0 }
  addEvents(prepared, events)
  return prepared
}

export function addEvents(prepared: Prepared<unknown>, events: readonly NewEvent[]): void {
  for (const { kind, data } of events) {
    const text = cleanJson(data)
    prepared.size += text.length + REFERENCE * prepared.ancestors.length
    prepared.events.push({ id: newId(), kind, data: text })
  }
}

/** One entry per run: each append's own, and for each ancestor all events of its sub-runs in this batch. */
export function entriesOf(batch: readonly Prepared[]): Entry[] {
  const own: Entry[] = batch.map(({ runId, fence, events, change }) => ({
    runId,
    fence,
    events,
    change,
    isForwarded: false,
  }))
  const forwarded = new Map<string, EntryEvent[]>()
  for (const prepared of batch) {
    for (const ancestor of prepared.ancestors) {
      const events = forwarded.get(ancestor) ?? []
      forwarded.set(ancestor, events)
      for (const place of prepared.events.keys()) events.push(inAncestor(ancestor, prepared, place))
    }
  }
  return [
    ...own,
    ...Array.from(forwarded, ([runId, events]) => ({
      runId,
      fence: null,
      events,
      change: undefined,
      isForwarded: true,
    })),
  ]
}

/** The sub-run's id comes first, so that a reader need not parse the rest to see whose event it is. */
function inAncestor(ancestor: string, { runId, events, change, ancestors }: Prepared, place: number): EntryEvent {
  const { kind = '', data = '{}' } = events[place] ?? {}
  const fields = data.slice(1)
  const isEnd = change?.set?.ended === true && place === events.length - 1
  return {
    id: newId(),
    kind,
    data: `{"run_id":"${runId}"${fields === '}' ? '' : ','}${fields}`,
    origin: { runId, place: place + 1, endsChild: isEnd && ancestor === ancestors.at(-1) },
  }
}

export function storedEvents(
  entry: Pick<Entry<unknown>, 'runId' | 'events'>,
  firstSeq: number,
  at: Date,
): StoredEvent[] {
  return entry.events.map(({ kind, data }, place) => ({ runId: entry.runId, seq: firstSeq + place, kind, data, at }))
}
