// Requests to a server. A failure is one sentence that says what to do, with the exit code that fits it.
import { z } from 'zod'
import { newId } from '../kernel/id.ts'
import { CommandFailure, exitCodes, unreachable } from './exit-codes.ts'

type HttpFetch = typeof globalThis.fetch

/** The address and the credentials of a server. */
export interface ServerPlace {
  url: URL
  key: string
  /** The origin of the key, for the message about a wrong one. */
  keyFrom: string
}

export interface ClientOptions {
  /** Asked before each request: a server that is started again may listen at another address. */
  locate: () => Promise<ServerPlace>
  fetch: HttpFetch
  signal: AbortSignal
  /** The pause before the next try of a request that found no server. */
  pause?: (ms: number) => Promise<void>
}

export interface Asked {
  method?: string
  body?: unknown
  headers?: Record<string, string>
  signal?: AbortSignal
}

export interface ApiClient {
  /** The answer as the schema reads it. */
  ask<Schema extends z.ZodType>(path: string, schema: Schema, asked?: Asked): Promise<z.output<Schema>>
  /** The same for a POST that starts something: it is tried again if the connection is cut, and takes effect once. */
  start<Schema extends z.ZodType>(path: string, schema: Schema, body: unknown): Promise<z.output<Schema>>
  /** The answer as it came, whose status says success. */
  open(path: string, asked?: Asked): Promise<Response>
}

const START_TRIES = 5
const ANSWERED_WITHIN_MS = 60_000

export function createClient({ locate, fetch, signal, pause = pauseFor }: ClientOptions): ApiClient {
  async function open(path: string, { method = 'GET', body, headers, signal: own = signal }: Asked = {}) {
    const place = await locate()
    const answer = await fetch(new URL(path, place.url), {
      method,
      signal: own,
      headers: {
        authorization: `Bearer ${place.key}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }).catch((error: unknown) => {
      own.throwIfAborted()
      throw unreachable(`${place.url.origin} does not answer (${reasonOf(error)}).`)
    })
    if (!answer.ok) throw await failureOf(answer, place)
    return answer
  }

  async function ask<Schema extends z.ZodType>(
    path: string,
    schema: Schema,
    asked: Asked = {},
  ): Promise<z.output<Schema>> {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(ANSWERED_WITHIN_MS)])
    try {
      const answer = await open(path, { signal: limit, ...asked })
      return readAs(schema, await answer.text(), path)
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof CommandFailure) throw error
      throw unreachable(`The server gave no whole answer (${reasonOf(error)}).`)
    }
  }

  return {
    ask,
    open,
    async start(path, schema, body) {
      const headers = { 'idempotency-key': newId(), prefer: 'respond-async' }
      for (let attempt = 1; ; attempt++) {
        try {
          return await ask(path, schema, { method: 'POST', body, headers })
        } catch (error) {
          const isOver = !(error instanceof CommandFailure) || error.exitCode !== exitCodes.unreachable
          if (isOver || attempt === START_TRIES) throw error
          await pause(200 * 2 ** attempt)
        }
      }
    },
  }
}

function readAs<Schema extends z.ZodType>(schema: Schema, text: string, path: string): z.output<Schema> {
  const value = parseJson(text)
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const place = parsed.error.issues[0]?.path.join('.') || 'the whole'
  throw new CommandFailure(
    exitCodes.failed,
    `The answer to ${path} is not one that this release knows (${place}). Is MUSTER_URL the address of a Muster?`,
    { code: 'UNKNOWN_ANSWER' },
  )
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const envelope = z.object({
  error: z.object({ code: z.string(), message: z.string(), details: z.unknown() }),
})

async function failureOf(answer: Response, { url, keyFrom }: ServerPlace): Promise<CommandFailure> {
  const { status } = answer
  const parsed = envelope.safeParse(parseJson(await answer.text().catch(() => '')))
  if (!parsed.success) {
    const message = `${url.origin} answered ${status}, and not as a Muster does.`
    return new CommandFailure(exitCodes.unreachable, message, { code: 'UNKNOWN_ANSWER' })
  }
  const { code, message, details } = parsed.data.error
  if (status === 401) {
    return new CommandFailure(exitCodes.refused, `${url.origin} does not accept the key from ${keyFrom}.`, { code })
  }
  if (status === 503 || status === 429) return new CommandFailure(exitCodes.unreachable, message, { code, details })
  const exitCode = status === 400 || status === 404 ? exitCodes.misused : exitCodes.refused
  return new CommandFailure(status >= 500 ? exitCodes.failed : exitCode, message, { code, details })
}

/** The reason of a failed fetch is the cause of its error. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  if (cause instanceof Error) return ('code' in cause && String(cause.code)) || cause.message || cause.name
  return String(cause)
}

const pauseFor = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
