// Tells watchers in this process of events of runs. It keeps no events; a watcher that sees a gap reads the journal.
import type { StoredEvent } from './entries.ts'

export interface Watcher {
  /** Called in order of seq, but with gaps for events of other processes. */
  onEvents(events: readonly StoredEvent[]): void
  onText(text: LiveText): void
  /** Called when the journal may be ahead of the events that were published here. */
  onPoke(): void
  onGone(): void
}

export interface LiveText {
  runId: string
  step: number
  offset: number
  text: string
}

export interface Hub {
  publish(events: readonly StoredEvent[]): void
  /** The listener is given all published events, before the watchers are. */
  hear(listener: (events: readonly StoredEvent[]) => void): void
  /** Publishes to the watchers of `watched`, which may be an ancestor of the run that the text is from. */
  publishText(watched: string, text: LiveText): void
  poke(runId: string): void
  end(runId: string): void
  watch(runId: string, watcher: Watcher): () => void
  watched(): string[]
}

export function createHub(): Hub {
  const watchers = new Map<string, Set<Watcher>>()
  const listeners: ((events: readonly StoredEvent[]) => void)[] = []
  return {
    hear: (listener) => void listeners.push(listener),
    publish: (events) => {
      for (const listener of listeners) listener(events)
      const runId = events[0]?.runId
      if (watchers.size === 0 || runId === undefined) return
      for (const watcher of watchers.get(runId) ?? []) watcher.onEvents(events)
    },
    publishText: (watched, text) => {
      if (watchers.size === 0) return
      for (const watcher of watchers.get(watched) ?? []) watcher.onText(text)
    },
    poke: (runId) => {
      for (const watcher of watchers.get(runId) ?? []) watcher.onPoke()
    },
    end: (runId) => {
      for (const watcher of [...(watchers.get(runId) ?? [])]) watcher.onGone()
    },
    watch: (runId, watcher) => {
      const known = watchers.get(runId) ?? new Set()
      watchers.set(runId, known.add(watcher))
      return () => {
        known.delete(watcher)
        if (known.size === 0) watchers.delete(runId)
      }
    },
    watched: () => [...watchers.keys()],
  }
}
