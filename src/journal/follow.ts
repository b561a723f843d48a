import type { Db } from '../db/pool.ts'
import type { StoredEvent } from './entries.ts'
import type { Hub, LiveText } from './hub.ts'
import { type JournalEvent, readEvents } from './read.ts'

export type Followed = { type: 'event'; event: StoredEvent } | { type: 'text'; text: LiveText }

export interface FollowOptions {
  db: Db
  hub: Hub
  /** The text so far of a step under way in this process. */
  soFar: (runId: string) => LiveText | null
  /** The texts so far of the sub-runs' steps under way in this process. */
  soFarBelow?: ((runId: string) => LiveText[]) | undefined
  /** Reads a page of the journal, oldest first. The default reads the journal of runs. */
  read?: (db: Db, runId: string, from: { after: number }) => Promise<JournalEvent[]>
}

/** The wait for a notice before the journal is read without one. */
const LOOK_AGAIN_MS = 5_000

/**
 * A run's events after a seq, without gap or repeat, and the text of the step under way. Events from the hub are used
 * if they follow on those already seen; all others are read from the journal.
 */
export async function* followRun(
  { db, hub, soFar, soFarBelow, read = readEvents }: FollowOptions,
  runId: string,
  { after, signal }: { after: number; signal: AbortSignal },
): AsyncGenerator<Followed> {
  let cursor = after
  // Events and texts are kept in the order of arrival: the events before a text tell which step it belongs to.
  const heard: Followed[] = []
  let mustRead = true
  let isGone = false
  let wake = (): void => {}
  const hear = (followed: readonly Followed[]): void => {
    heard.push(...followed)
    wake()
  }
  const stopWatching = hub.watch(runId, {
    onEvents: (events) => hear(events.map((event) => ({ type: 'event', event }))),
    onText: (text) => hear([{ type: 'text', text }]),
    onPoke: () => {
      mustRead = true
      wake()
    },
    onGone: () => {
      isGone = true
      wake()
    },
  })
  const onAbort = (): void => wake()
  signal.addEventListener('abort', onAbort)
  const shown = createTextCursor()
  const current = [soFar(runId), ...(soFarBelow?.(runId) ?? [])].filter((text) => text !== null)
  hear(current.map((text) => ({ type: 'text', text })))
  try {
    while (!signal.aborted && !isGone) {
      while (mustRead) yield* readOn()
      const next = heard.shift()
      if (!next) await nextNotice()
      else if (next.type === 'text') yield* shown.show(next.text)
      else if (next.event.seq === cursor + 1) yield pass(next.event)
      else if (next.event.seq > cursor) {
        // Another process wrote in between; reading the journal also gives the events that were heard.
        yield* readOn()
      }
    }
  } finally {
    stopWatching()
    signal.removeEventListener('abort', onAbort)
  }

  async function* readOn(): AsyncGenerator<Followed> {
    mustRead = false
    const page = await read(db, runId, { after: cursor })
    if (page.length > 0) mustRead = true
    for (const { seq, kind, data, at } of page) {
      if (seq === cursor + 1) yield pass({ runId, seq, kind, data: JSON.stringify(data), at })
    }
  }

  function pass(event: StoredEvent): Followed {
    cursor = event.seq
    shown.note(event)
    return { type: 'event', event }
  }

  async function nextNotice(): Promise<void> {
    if (mustRead || isGone || signal.aborted) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(() => {
      mustRead = true
      resolve()
    }, LOOK_AGAIN_MS)
    wake = resolve
    await promise
    clearTimeout(timer)
    wake = () => {}
  }
}

/** Remembers the shown part of each step's text. The same text may come by two ways; offsets tell the new part. */
function createTextCursor() {
  const steps = new Map<string, { step: number; length: number; doneStep: number }>()
  return {
    *show({ runId, step, offset, text }: LiveText): Generator<Followed> {
      const known = steps.get(runId) ?? { step: 0, length: 0, doneStep: 0 }
      if (step <= known.doneStep) return
      const length = known.step === step ? known.length : 0
      const fresh = text.slice(Math.max(0, length - offset))
      // A piece that does not follow on the shown part is dropped: the whole text is read repeatedly.
      if (offset > length || fresh === '') return
      steps.set(runId, { ...known, step, length: length + fresh.length })
      yield { type: 'text', text: { runId, step, offset: length, text: fresh } }
    },
    /** Notes a step that is over or begins anew: its whole text is known, or its text is void. */
    note({ runId, kind, data }: StoredEvent): void {
      if (kind !== 'step.completed' && kind !== 'step.restarted') return
      const { run_id = runId, step } = JSON.parse(data) as { run_id?: string; step: number } // both carry the step
      const known = steps.get(run_id)
      const doneStep = kind === 'step.completed' ? step : step - 1
      // Text of the next step may have come before this event: the text stays shown.
      steps.set(run_id, known && known.step > step ? { ...known, doneStep } : { step: 0, length: 0, doneStep })
    },
  }
}
