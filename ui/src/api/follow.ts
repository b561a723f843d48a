// A stream of server-sent events that comes back by itself and goes on after the last event seen. EventSource cannot
// begin after a given event, nor tell a refusal from a cut connection.

export interface StreamEvent {
  id: string | null
  event: string
  data: string
}

export interface FollowOptions {
  /** The id of the last event that is known already. */
  after: string | null
  /** Tells whether a stream that the server closed has ended: a server that stops closes its streams too. By default, yes. */
  hasEnded?: () => Promise<boolean>
  onEvent: (event: StreamEvent) => void
  /** True: the stream is open. False: the connection was cut, and is tried again. */
  onOpen?: (isOpen: boolean) => void
  /** The server closed the stream after its last event, or refused it for good. */
  onEnd?: (status: number) => void
}

const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 1_500
/** The server sends a comment every 15 seconds; a longer silence means a cut connection. */
const SILENCE_MS = 25_000

/** Returns the function that stops following. */
export function follow(path: string, options: FollowOptions): () => void {
  const stop = new AbortController()
  void keepOpen(path, options, stop.signal)
  return () => stop.abort()
}

async function keepOpen(path: string, options: FollowOptions, signal: AbortSignal): Promise<void> {
  let last = options.after
  for (let pauseMs = FIRST_PAUSE_MS; !signal.aborted; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    const outcome = await readOnce(
      path,
      last,
      signal,
      (event) => {
        last = event.id ?? last
        pauseMs = FIRST_PAUSE_MS
        options.onEvent(event)
      },
      options.onOpen,
    )
    if (signal.aborted) return
    const isOver = outcome.isOver && (outcome.status !== 200 || (await isAtItsEnd(options)))
    if (signal.aborted) return
    if (isOver) return options.onEnd?.(outcome.status)
    options.onOpen?.(false)
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
}

/** A server that cannot tell is on its way down, or up again. */
const isAtItsEnd = async ({ hasEnded }: FollowOptions): Promise<boolean> => hasEnded?.().catch(() => false) ?? true

interface Outcome {
  isOver: boolean
  status: number
}

async function readOnce(
  path: string,
  after: string | null,
  signal: AbortSignal,
  onEvent: (event: StreamEvent) => void,
  onOpen: ((isOpen: boolean) => void) | undefined,
): Promise<Outcome> {
  const quiet = new AbortController()
  let timer = setTimeout(() => quiet.abort(), SILENCE_MS)
  try {
    const answer = await fetch(path, {
      headers: { accept: 'text/event-stream', ...(after === null ? {} : { 'last-event-id': after }) },
      cache: 'no-store',
      signal: AbortSignal.any([signal, quiet.signal]),
    })
    if (!answer.ok || !answer.body) return { isOver: await isRefusal(answer), status: answer.status }
    onOpen?.(true)
    for await (const event of parseEvents(answer.body.pipeThrough(new TextDecoderStream()))) {
      clearTimeout(timer)
      timer = setTimeout(() => quiet.abort(), SILENCE_MS)
      if (event) onEvent(event)
    }
    return { isOver: true, status: answer.status }
  } catch {
    return { isOver: false, status: 0 }
  } finally {
    clearTimeout(timer)
  }
}

/** Only a refusal by Muster itself is final: a proxy may answer anything while Muster is away. */
async function isRefusal(answer: Response): Promise<boolean> {
  if (answer.status === 204) return true
  if (answer.status < 400 || answer.status >= 500 || answer.status === 429) return false
  const content = (await answer.json().catch(() => null)) as { error?: { code?: unknown } } | null // as the API writes it
  return typeof content?.error?.code === 'string'
}

/** Yields null for a comment. */
export async function* parseEvents(stream: ReadableStream<string>): AsyncGenerator<StreamEvent | null> {
  let rest = ''
  let event: StreamEvent = { id: null, event: 'message', data: '' }
  const reader = stream.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      const lines = (rest + value).split(/\r\n|\n|\r/)
      rest = lines.pop() ?? ''
      for (const line of lines) {
        if (line === '') {
          if (event.data !== '') yield { ...event, data: event.data.slice(0, -1) }
          event = { id: null, event: 'message', data: '' }
          continue
        }
        if (line.startsWith(':')) {
          yield null
          continue
        }
        const [, field = line, text = ''] = /^([^:]*):? ?(.*)$/s.exec(line) ?? []
        if (field === 'data') event.data += `${text}\n`
        if (field === 'event') event.event = text
        if (field === 'id') event.id = text
      }
    }
  } finally {
    reader.releaseLock()
  }
}
