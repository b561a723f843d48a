// Forwards requests to the agent-service unchanged, and passes its answers on as they arrive, so that a stream is not
// delayed. Failures of the agent-service get the envelope of every other failure.
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { FastifyReply, FastifyRequest, HTTPMethods } from 'fastify'
import type { Fetch } from '../../egress/egress.ts'
import { MusterError, unavailable } from '../../kernel/errors.ts'
import { newId } from '../../kernel/id.ts'
import type { Log } from '../../kernel/log.ts'
import type { App } from './app.ts'
import { nothingHere } from './not-found.ts'

export interface ForwardOptions {
  /** The address of the agent-service; the path of the request is added. */
  agentUrl: URL
  /** The `fetch` of the `trusted` policy, because the operator sets the address. Must not time out on a silent answer. */
  fetch: Fetch
  log: Log
  /** The time that requests under way have to be answered when the server closes. */
  closeWithinMs?: number
}

const METHODS: HTTPMethods[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
const CLOSE_WITHIN_MS = 5_000

/** The headers of one connection, which are not passed on to the next (RFC 9110, section 7.6.1). */
const HOP_BY_HOP = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]
/** Headers that are set anew for the request to the agent-service, here or by its HTTP client. */
const SET_ANEW = ['host', 'content-length', 'expect', 'accept-encoding', 'forwarded', 'via', 'x-request-id']

interface Target extends ForwardOptions {
  prefixes: readonly string[]
  /** The name in the Via header by which this service recognises a request that comes back to it. */
  name: string
}

/** Adds a route for every address below the prefixes, which end with a slash, and for the single paths. */
export function addForwarding(
  app: App,
  { prefixes, paths, ...options }: ForwardOptions & { prefixes: readonly string[]; paths: readonly string[] },
): void {
  const underWay = trackForwarded(app, options.closeWithinMs ?? CLOSE_WITHIN_MS)
  const target = { ...options, prefixes: [...prefixes, ...paths], name: `muster-${newId().slice(-12)}` }
  for (const url of [...prefixes.map((prefix) => `${prefix}*`), ...paths]) {
    app.route({
      method: METHODS,
      url,
      config: { access: 'public' },
      schema: { hide: true },
      handler: async (request, reply) => forward(target, request, reply, underWay(reply)),
    })
  }
}

async function forward(
  target: Target,
  request: FastifyRequest,
  reply: FastifyReply,
  signal: AbortSignal,
): Promise<FastifyReply> {
  const { agentUrl, fetch, log, name } = target
  if (request.headers.via?.includes(name)) {
    throw unavailable('This request was forwarded here by this service itself: check MUSTER_AGENT_URL.')
  }
  const url = addressOf(target, request.raw.url ?? '')
  const answer = await fetch(url, {
    method: request.method,
    headers: headersFor(request, name),
    body: Buffer.isBuffer(request.body) ? new Uint8Array(request.body) : null,
    redirect: 'manual',
    signal,
  }).catch((error: unknown) => {
    if (reply.raw.destroyed) return null
    if (signal.aborted) throw stopping()
    log.warn({ request_id: request.id, agent: agentUrl.origin, err: error }, 'the agent-service did not answer')
    throw unavailable('The agent-service does not answer. Try again in a moment.', error)
  })
  // The client has gone, so there is nobody to answer.
  if (answer === null) return reply.hijack()
  return passOn(target, request, reply, answer)
}

/** The request's address at the agent-service. Dots in a path lead to no address outside of the prefixes. */
function addressOf({ agentUrl, prefixes }: Target, path: string): URL {
  const base = agentUrl.pathname.replace(/\/+$/, '')
  const url = path.startsWith('/') ? URL.parse(`${agentUrl.origin}${base}${path}`) : null
  const below = url?.pathname.slice(base.length) ?? ''
  const isWithin = url?.pathname.startsWith(base) && prefixes.some((prefix) => below.startsWith(prefix))
  if (!url || !isWithin) throw nothingHere()
  return url
}

function headersFor(request: FastifyRequest, name: string): Headers {
  const headers = new Headers()
  const dropped = new Set([...HOP_BY_HOP, ...SET_ANEW, ...namedIn(request.headers.connection)])
  for (const [key, value] of Object.entries(request.headers)) {
    if (value === undefined || dropped.has(key) || key.startsWith('x-forwarded-')) continue
    for (const one of [value].flat()) headers.append(key, one)
  }
  // Only the addresses that a proxy we trust has named are passed on.
  headers.set('x-forwarded-for', [...(request.ips ?? [request.ip])].reverse().join(', '))
  headers.set('x-forwarded-proto', request.protocol)
  if (request.host) headers.set('x-forwarded-host', request.host)
  headers.set('x-request-id', request.id)
  headers.set('via', [request.headers.via, `1.1 ${name}`].filter(Boolean).join(', '))
  // A compressed answer would be uncompressed here, and arrive in pieces of another size.
  headers.set('accept-encoding', 'identity')
  return headers
}

/** The headers that a Connection header names belong to that connection too. */
const namedIn = (connection: string | null | undefined): string[] =>
  (connection ?? '')
    .split(',')
    .map((each) => each.trim().toLowerCase())
    .filter((each) => each !== '')

async function passOn(
  { log }: Target,
  request: FastifyRequest,
  reply: FastifyReply,
  answer: Response,
): Promise<FastifyReply> {
  const isPacked = answer.headers.has('content-encoding')
  const dropped = new Set([...HOP_BY_HOP, ...namedIn(answer.headers.get('connection')), 'set-cookie', 'date', 'via'])
  if (isPacked) for (const key of ['content-encoding', 'content-length']) dropped.add(key)
  const { raw } = reply
  reply.hijack()
  raw.statusCode = answer.status
  for (const [key, value] of Object.entries(reply.getHeaders())) if (value !== undefined) raw.setHeader(key, value)
  for (const [key, value] of answer.headers) if (!dropped.has(key)) raw.setHeader(key, value)
  const cookies = answer.headers.getSetCookie()
  if (cookies.length > 0) raw.setHeader('set-cookie', cookies)
  // A stream may send nothing for a while, and its reader waits for the headers.
  raw.flushHeaders()
  try {
    if (answer.body === null) raw.end()
    else await pipeline(Readable.fromWeb(answer.body), raw)
  } catch (error) {
    // The connection is cut off, so that the reader knows that this was not the end.
    raw.destroy()
    log.debug({ request_id: request.id, err: error }, 'a forwarded answer was cut off')
  }
  return reply
}

/**
 * A request is given up when its client is gone. When the server closes, streams are cut off, and requests that wait
 * have a moment left. The agent-service goes on with accepted requests.
 */
function trackForwarded(app: App, closeWithinMs: number): (reply: FastifyReply) => AbortSignal {
  const open = new Map<FastifyReply, AbortController>()
  let isClosing = false
  app.addHook('preClose', async () => {
    isClosing = true
    for (const [reply, controller] of open) if (reply.raw.headersSent) controller.abort()
    const late = performance.now() + closeWithinMs
    while (open.size > 0 && performance.now() < late) await new Promise((resolve) => setTimeout(resolve, 20))
    for (const controller of open.values()) controller.abort()
  })
  return (reply) => {
    if (isClosing) throw stopping()
    const controller = new AbortController()
    open.set(reply, controller)
    reply.raw.once('close', () => {
      open.delete(reply)
      controller.abort()
    })
    return controller.signal
  }
}

const stopping = (): MusterError => new MusterError('UNAVAILABLE', 'This service is stopping.', { retryAfterS: 1 })
