import type { Db } from '../db/pool.ts'
import type { StoredEvent } from './entries.ts'
import type { Hub, LiveText } from './hub.ts'
import { readEvents } from './read.ts'

export type Followed = { type: 'event'; event: StoredEvent } | { type: 'text'; text: LiveText }

export interface FollowOptions {
  db: Db
  hub: Hub
  /** The text so far of a step under way in this process. */
  soFar: (runId: string) => LiveText | null
}

/** Waits this long for a notice before it looks by itself. */
const LOOK_AGAIN_MS = 5_000

/**
 * A run's events after a seq, without gap or repeat, and the text of the step under way, until the caller stops asking.
 * What is heard from the hub is used where it follows on what was seen; everything else is read from the journal.
 */
export async function* followRun(
  { db, hub, soFar }: FollowOptions,
  runId: string,
  { after, signal }: { after: number; signal: AbortSignal },
): AsyncGenerator<Followed> {
  let cursor = after
  let heard: StoredEvent[] = []
  let texts: LiveText[] = []
  let mustRead = true
  let wake = (): void => {}
  const stopWatching = hub.watch(runId, {
    onEvents: (events) => {
      heard.push(...events)
      wake()
    },
    onText: (text) => {
      texts.push(text)
      wake()
    },
    onPoke: () => {
      mustRead = true
      wake()
    },
  })
  const onAbort = (): void => wake()
  signal.addEventListener('abort', onAbort)
  const shown = createTextCursor()
  const current = soFar(runId)
  if (current) texts.push(current)
  try {
    while (!signal.aborted) {
      // Texts were said before the events that were heard after them, and are void once those are shown.
      for (const text of takeTexts()) yield* shown.show(text)
      for (const event of takeHeard()) yield* emit(event)
      while (mustRead) {
        mustRead = false
        const page = await readEvents(db, runId, { after: cursor })
        if (page.length > 0) mustRead = true
        for (const { seq, kind, data, at } of page) {
          yield* emit({ runId, seq, kind, data: JSON.stringify(data), at })
        }
      }
      if (heard.length === 0 && texts.length === 0 && !mustRead && !signal.aborted) await nextNotice()
    }
  } finally {
    stopWatching()
    signal.removeEventListener('abort', onAbort)
  }

  function* emit(event: StoredEvent): Generator<Followed> {
    if (event.seq <= cursor) return
    if (event.seq > cursor + 1) {
      mustRead = true
      return
    }
    cursor = event.seq
    shown.note(event)
    yield { type: 'event', event }
  }

  function takeHeard(): StoredEvent[] {
    const taken = heard
    heard = []
    return taken
  }

  function takeTexts(): LiveText[] {
    const taken = texts
    texts = []
    return taken
  }

  async function nextNotice(): Promise<void> {
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

/** Which part of a step's text was shown. The same text may come by two ways; offsets tell what is new. */
function createTextCursor() {
  const steps = new Map<string, { step: number; length: number; doneStep: number }>()
  return {
    *show({ runId, step, offset, text }: LiveText): Generator<Followed> {
      const known = steps.get(runId) ?? { step: 0, length: 0, doneStep: 0 }
      if (step <= known.doneStep) return
      const length = known.step === step ? known.length : 0
      const fresh = text.slice(Math.max(0, length - offset))
      // A piece that does not follow on what was shown waits for the whole text, which is read again and again.
      if (offset > length || fresh === '') return
      steps.set(runId, { ...known, step, length: length + fresh.length })
      yield { type: 'text', text: { runId, step, offset: length, text: fresh } }
    },
    /** A step that is over or begins anew: its text is void or known whole. */
    note({ runId, kind, data }: StoredEvent): void {
      if (kind !== 'step.completed' && kind !== 'step.restarted') return
      const { run_id = runId, step } = JSON.parse(data) as { run_id?: string; step: number } // both kinds carry it
      steps.set(run_id, { step: 0, length: 0, doneStep: kind === 'step.completed' ? step : step - 1 })
    },
  }
}
