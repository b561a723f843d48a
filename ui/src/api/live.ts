// One stream of changes for all tabs: a browser has six connections per origin. The tab that holds the lock follows the
// stream and passes its changes on; when that tab closes, the next one takes the lock.

import { tellSignedOut } from './client.ts'
import { follow } from './follow.ts'
import { HOME_KEY } from './home.ts'
import { queries } from './queries.ts'
import { readAgain } from './read-again.ts'
import { createSpacedReads } from './spaced-reads.ts'

export interface Change {
  kind: 'run' | 'flow_run' | 'task' | 'agent' | 'object' | 'alert' | 'message'
  id: string
  project_id: string
  status: string | null
  at: string
}

type Message = { type: 'change'; change: Change } | { type: 'reset' } | { type: 'open'; isOpen: boolean }

const LOCK = 'muster-changes'
/** Many changes within this time cause one read of each list. */
const READ_EVERY_MS = 500
/** Home is one read of all projects, each of which may change at any time. */
const HOME_EVERY_MS = 1_000
/** Home shows nothing of other changes. */
const HOME_KINDS: ReadonlySet<Change['kind']> = new Set(['run', 'flow_run', 'task', 'agent', 'alert'])

const listeners = new Set<(isOpen: boolean) => void>()

/** Follows the changes until the returned function is called. */
export function followChanges(): () => void {
  const stop = new AbortController()
  const channel = new BroadcastChannel(LOCK)
  const reads = createReads()
  const take = (message: Message): void => {
    if (message.type === 'change') reads.note(message.change)
    else if (message.type === 'reset') reads.all()
    else for (const listener of listeners) listener(message.isOpen)
  }
  channel.onmessage = ({ data }: MessageEvent<Message>) => take(data)
  const tell = (message: Message): void => {
    take(message)
    channel.postMessage(message)
  }
  void whileLeading(stop.signal, () => followStream(tell))
  return () => {
    stop.abort()
    channel.close()
    reads.stop()
  }
}

/** Calls the listener when the stream is cut or open again. */
export function onLive(listener: (isOpen: boolean) => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

/** Runs the work while this tab holds the lock. Origins that are not secure have no locks: each tab leads itself. */
async function whileLeading(signal: AbortSignal, work: () => () => void): Promise<void> {
  const lead = async (): Promise<void> => {
    const end = work()
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
    end()
  }
  if (!('locks' in navigator)) return lead()
  await navigator.locks.request(LOCK, { signal }, lead).catch(() => {})
}

/** After a refusal the stream is asked for again, because nothing else would tell that it may be read again. */
const AGAIN_AFTER_MS = 5_000

function followStream(tell: (message: Message) => void): () => void {
  let wasOpen = false
  let timer: ReturnType<typeof setTimeout> | undefined
  let stop = (): void => {}
  const begin = (): void => {
    stop = followOnce()
  }
  const onEnd = (status: number): void => {
    wasOpen = false
    tell({ type: 'open', isOpen: false })
    if (status === 401) tellSignedOut()
    timer = setTimeout(begin, AGAIN_AFTER_MS)
  }
  const followOnce = () =>
    follow('/api/events', {
      after: null,
      hasEnded: async () => false,
      onOpen: (isOpen) => {
        tell({ type: 'open', isOpen })
        // Nobody knows what happened before the stream was open, so the lists are read once more.
        if (isOpen && !wasOpen) tell({ type: 'reset' })
        wasOpen = isOpen
      },
      onEvent: ({ event, data }) => {
        if (event === 'reset') tell({ type: 'reset' })
        if (event === 'change') tell({ type: 'change', change: JSON.parse(data) as Change }) // as src/api/feed/reader.ts writes it
      },
      onEnd,
    })
  begin()
  return () => {
    clearTimeout(timer)
    stop()
  }
}

/** Reads the lists of the kind again, and the thing itself: the keys of queries are [kind, project, 'list' or id]. */
function createReads() {
  const changed = new Map<string, string[]>()
  const home = createSpacedReads(() => readAgain(queries, HOME_KEY), {
    afterMs: READ_EVERY_MS,
    everyMs: HOME_EVERY_MS,
  })
  let timer: ReturnType<typeof setTimeout> | undefined
  const flush = (): void => {
    timer = undefined
    for (const queryKey of changed.values()) readAgain(queries, queryKey)
    changed.clear()
  }
  return {
    note: ({ kind, project_id, id }: Change): void => {
      for (const part of ['list', id]) changed.set(`${kind} ${project_id} ${part}`, [kind, project_id, part])
      timer ??= setTimeout(flush, READ_EVERY_MS)
      if (HOME_KINDS.has(kind)) home.note()
    },
    all: (): void => readAgain(queries),
    stop: (): void => {
      clearTimeout(timer)
      home.stop()
    },
  }
}
