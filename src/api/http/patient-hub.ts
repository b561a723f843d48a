import type { Hub, LiveText, Watcher } from '../../journal/hub.ts'
import { type EventStream, MOST_WAITING } from './sse.ts'

export interface PatientHub {
  hub: Hub
  /** Called when the reader has taken all that it was sent. */
  onTaken(): void
}

/**
 * The hub for one reader, who may be slower than the events. While the reader is behind, events are left to the
 * journal; when it reads again, it gets a running text as a whole.
 */
export function createPatientHub(
  { hub, soFar }: { hub: Hub; soFar: (runId: string) => LiveText | null },
  stream: Pick<EventStream, 'isBlocked' | 'miss'>,
): PatientHub {
  let unread = 0
  let listener: Watcher | null = null
  const silenced = new Set<string>()

  function mayPass(characters: number): boolean {
    if (stream.isBlocked()) {
      stream.miss(characters)
      return false
    }
    unread += characters
    return unread <= MOST_WAITING
  }
  return {
    hub: {
      ...hub,
      watch: (runId, watcher) => {
        listener = watcher
        return hub.watch(runId, {
          onEvents: (events) => {
            if (mayPass(events.reduce((sum, event) => sum + event.data.length, 0))) watcher.onEvents(events)
            else watcher.onPoke()
          },
          onText: (text) => {
            if (mayPass(text.text.length)) watcher.onText(text)
            else silenced.add(text.runId)
          },
          onPoke: () => watcher.onPoke(),
          onGone: () => watcher.onGone(),
        })
      },
    },
    onTaken: () => {
      unread = 0
      if (silenced.size === 0) return
      for (const runId of silenced) {
        const text = soFar(runId)
        if (text) listener?.onText(text)
      }
      silenced.clear()
    },
  }
}
