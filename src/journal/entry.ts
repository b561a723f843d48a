import type { RunChange } from './run-change.ts'

export interface Entry<Change = RunChange> {
  runId: string
  /** The owner's fence; null for facts from outside, which never change ownership. */
  fence: number | null
  events: readonly EntryEvent[]
  change: Change | undefined
  /** True for events of sub-runs: an ancestor that has ended takes no more of them. */
  isForwarded: boolean
}

export interface EntryEvent {
  id: string
  kind: string
  /** JSON text, as streams show it. */
  data: string
  /** Set on a sub-run's event in the journal of an ancestor: the place of the event in the sub-run's own journal. */
  origin?: Origin
}

interface Origin {
  runId: string
  /** The place of the event among those that the sub-run appends in this batch, from 1 on. */
  place: number
  /** True if the event ends the sub-run and the ancestor is the sub-run's parent. */
  endsChild: boolean
}

export interface Written {
  firstSeq: number
  at: Date
  /** True if the run's row says that its end was asked for; not every journal fills this. */
  isCancelled?: boolean
  /** True if not all events were written, because another process owns some of the sub-runs by now. */
  isPartial?: boolean
}

/** All events in one list. For each, the number of its entry and its place within the entry, both from 1 on. */
export function eventsInOrder(entries: readonly Entry<unknown>[]): {
  events: EntryEvent[]
  ofEntry: number[]
  places: number[]
} {
  const events: EntryEvent[] = []
  const ofEntry: number[] = []
  const places: number[] = []
  for (const [index, entry] of entries.entries()) {
    for (const [place, event] of entry.events.entries()) {
      events.push(event)
      ofEntry.push(index + 1)
      places.push(place + 1)
    }
  }
  return { events, ofEntry, places }
}
