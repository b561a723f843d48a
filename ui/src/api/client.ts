// The one file that talks to the API. A call gives the body, or throws an ApiError whose message is meant for people.
import { plainMessage } from './issues.ts'

export class ApiError extends Error {
  /** 0: no answer came. */
  readonly status: number
  readonly code: string
  readonly details: unknown

  constructor(status: number, code: string, message: string, details: unknown = null) {
    super(message)
    this.status = status
    this.code = code
    this.details = details
  }
}

export interface Page<Item> {
  items: Item[]
  next_cursor: string | null
}

export type Query = Record<string, string | number | boolean | null | undefined>

interface CallOptions {
  query?: Query
  body?: unknown
  headers?: Record<string, string>
  signal?: AbortSignal | undefined
  patienceMs?: number
}

const PATIENCE_MS = 20_000
/** Muster is busy, or its database is coming back. GETs are retried; writes are not. */
const BUSY = 503
const MOST_TRIES = 4
const LONGEST_PAUSE_MS = 3_000

export const get = <Answer>(path: string, options?: Omit<CallOptions, 'body'>): Promise<Answer> =>
  call<Answer>('GET', path, options)
export const post = <Answer>(path: string, body: unknown = {}, options: CallOptions = {}): Promise<Answer> =>
  onceByKey(`${path} ${JSON.stringify(body)}`, (key) =>
    call<Answer>('POST', path, { ...options, body, headers: { ...options.headers, 'idempotency-key': key } }),
  )
export const patch = <Answer>(path: string, body: unknown): Promise<Answer> => call<Answer>('PATCH', path, { body })
export const put = <Answer>(path: string, body: unknown): Promise<Answer> => call<Answer>('PUT', path, { body })
export const remove = (path: string): Promise<null> => call<null>('DELETE', path)

/** Starts work without waiting for its end. */
export const startWork = <Answer>(path: string, body: unknown): Promise<Answer> =>
  post<Answer>(path, body, { headers: { prefer: 'respond-async' } })

/** A key that no other request has. `crypto.randomUUID` exists only on secure origins. */
export const newKey = (): string =>
  [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('')

/** Muster keeps keys for a day; a person who asks again after this time wants it done again. */
const SAME_WISH_MS = 10 * 60_000
const unanswered = new Map<string, { key: string; at: number }>()

/**
 * Until an answer came, the same request again has the same key: Muster may have done it, and does not do it twice. That
 * holds for a second click, for a click after a lost answer, and over a dialog that was closed meanwhile. A changed body
 * is another request.
 */
async function onceByKey<Answer>(request: string, send: (key: string) => Promise<Answer>): Promise<Answer> {
  const before = unanswered.get(request)
  const isSameWish = before !== undefined && Date.now() - before.at < SAME_WISH_MS
  const key = isSameWish ? before.key : newKey()
  unanswered.set(request, { key, at: Date.now() })
  const forget = (): void => {
    if (unanswered.get(request)?.key === key) unanswered.delete(request)
  }
  try {
    const answer = await send(key)
    forget()
    return answer
  } catch (error) {
    // An answer that was cut off within its body has status 200, too.
    if (error instanceof ApiError && isRefusal(error.status)) forget()
    throw error
  }
}

/** Refusals of a sender, a proxy or a busy server. An earlier try of the same request may have been done all the same. */
const UNREAD: ReadonlySet<number> = new Set([401, 408, 413, 425, 429])

const isRefusal = (status: number): boolean => status >= 400 && status < 500 && !UNREAD.has(status)

const listeners = new Set<() => void>()

/** Called when an answer tells that the session has ended. */
export function tellSignedOut(): void {
  for (const listener of listeners) listener()
}

/** Calls the listener when a request tells that the session has ended. */
export function onSignedOut(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

let offsetMs = 0

/** Now, by Muster's clock: the clock of this machine may be wrong. */
export const serverNow = (): number => Date.now() + offsetMs

async function call<Answer>(method: string, path: string, options: CallOptions = {}): Promise<Answer> {
  const url = withQuery(path, options.query)
  const answer = method === 'GET' ? await sendPatiently(url, options) : await send(method, url, options)
  if (answer.status === 204) return null as Answer // a call whose route answers 204 has the type null
  const content: unknown = await answer.json().catch(() => undefined)
  if (answer.ok && content !== undefined) return content as Answer // the contract of the API, which has the same types
  if (answer.ok) throw new ApiError(answer.status, 'UNKNOWN', 'The answer is not from Muster. Is a proxy in between?')
  // At these two addresses 401 is an answer, not the end of a session.
  const isDoor = path === '/api/me' || path === '/api/auth/sign-in'
  if (answer.status === 401 && !isDoor) tellSignedOut()
  const { code, message, details } = errorIn(content)
  const told = message === undefined ? `Muster answered ${answer.status}.` : plainMessage(message, details)
  throw new ApiError(answer.status, code ?? 'UNKNOWN', told, details)
}

function errorIn(content: unknown): { code?: string; message?: string; details?: unknown } {
  const given = (content as { error?: unknown } | null | undefined)?.error // every error of the API has this shape
  return typeof given === 'object' && given !== null ? given : {}
}

function withQuery(path: string, query: Query = {}): string {
  const given = Object.entries(query).flatMap<[string, string]>(([name, value]) =>
    value === undefined || value === null || value === '' ? [] : [[name, String(value)]],
  )
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`
}

async function sendPatiently(url: string, options: CallOptions): Promise<Response> {
  for (let tries = 1; ; tries++) {
    const answer = await send('GET', url, options).catch((error: unknown) => {
      if (tries === MOST_TRIES || options.signal?.aborted) throw error
      return null
    })
    if (answer && (answer.status !== BUSY || tries === MOST_TRIES)) return answer
    const pauseMs = Number(answer?.headers.get('retry-after') ?? 1) * 1_000
    await new Promise((resolve) => setTimeout(resolve, Math.min(pauseMs, LONGEST_PAUSE_MS)))
  }
}

async function send(method: string, url: string, options: CallOptions): Promise<Response> {
  const { body, headers = {}, signal, patienceMs = PATIENCE_MS } = options
  try {
    const answer = await fetch(url, {
      method,
      headers: body === undefined ? headers : { 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      cache: 'no-store',
      signal: AbortSignal.any([AbortSignal.timeout(patienceMs), ...(signal ? [signal] : [])]),
    })
    noteTime(answer.headers.get('date'))
    return answer
  } catch (error) {
    if (signal?.aborted) throw error
    throw new ApiError(0, 'NO_ANSWER', 'Muster does not answer. Is it running?')
  }
}

/** The header gives whole seconds, so a difference of less than two is none. */
function noteTime(date: string | null): void {
  const differsBy = date === null ? 0 : Date.parse(date) - Date.now()
  offsetMs = Math.abs(differsBy) < 2_000 ? 0 : differsBy
}
