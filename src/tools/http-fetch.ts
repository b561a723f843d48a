// A request to the web, made by a model. Egress decides about its target; the answer is bounded while it is read.
import { z } from 'zod'
import type { Egress, Fetch } from '../egress/egress.ts'
import { readBody } from '../egress/read-body.ts'
import { nextHop, redirectTarget } from '../egress/redirects.ts'
import { isUnsent } from '../egress/unsent.ts'
import { type CallTool, OutcomeUnknown, type ToolEffect } from '../kernel/tool.ts'
import { zodArguments } from './arguments.ts'

const MAX_BODY_BYTES = 1_048_576
const MOST_REDIRECTS = 3

/** Headers that would change the host that is asked, the framing of the message, or its next hop. */
const REFUSED_HEADERS =
  /^(?:host|content-length|connection|keep-alive|transfer-encoding|te|trailer|upgrade|expect|via|idempotency-key|(?:proxy|sec|x-forwarded)-.*|forwarded|x-real-ip)$/i
const SHOWN_HEADERS = [
  'content-type',
  'content-length',
  'date',
  'etag',
  'last-modified',
  'link',
  'location',
  'retry-after',
  'www-authenticate',
]

const headerField = z
  .record(
    z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/, 'must be the name of a header'),
    z
      .string()
      .max(8_192)
      .regex(/^[\t\x20-\x7e\x80-\xff]*$/, 'must be one line of text'),
  )
  .refine((headers) => Object.keys(headers).length <= 50, 'must be at most 50 headers')
  .refine(
    (headers) => !Object.keys(headers).some((name) => REFUSED_HEADERS.test(name)),
    'must not set headers of the connection (host, content-length, connection, proxy-…) nor idempotency-key',
  )

const httpFetchArguments = z.strictObject({
  url: z.string().min(1).max(8_192).describe('An absolute http or https URL of a public host.'),
  method: z.enum(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']).default('GET'),
  headers: headerField.optional().describe('Request headers by name.'),
  body: z.string().max(1_048_576).optional().describe('The request body as text; not with GET or HEAD.'),
})
type HttpFetchArguments = z.infer<typeof httpFetchArguments>

const DESCRIPTION = `Makes an HTTP request to a public web address and answers {status, headers, body}.

- Only http and https, only public hosts. Up to three redirects are followed;
  a write that is redirected to another host is not: its answer says where.
- "body" is parsed JSON where the answer is JSON, otherwise text. Binary content is described, not shown. Long answers
  are cut.
- A status of 400 or more is an answer like any other: read it before you try again.
- To send JSON, put its text into "body" and set the header content-type to application/json.`

export function createHttpFetchTool(egress: Pick<Egress, 'fetch'>): CallTool {
  const request = egress.fetch('public')
  return {
    kind: 'call',
    name: 'http_fetch',
    description: DESCRIPTION,
    ...zodArguments(httpFetchArguments),
    effect: 'unsafe',
    effectOf: (args, { idempotent_hosts }) => effectOf(httpFetchArguments.parse(args), idempotent_hosts),
    isPoller: false,
    timeoutMs: null,
    async execute(args, { signal, key }) {
      const { url, method, headers, body } = httpFetchArguments.parse(args)
      const isRead = isReading(method)
      if (isRead && body !== undefined) throw new Error(`A ${method} request has no body. Leave it out, or use POST.`)
      const made = isRead
        ? request(url, { method, headers: { 'user-agent': 'muster', ...headers }, signal })
        : write(request, url, {
            method,
            headers: { 'user-agent': 'muster', ...headers, 'idempotency-key': key },
            body: body ?? null,
            signal,
          })
      const response = await made.catch((error: unknown) => {
        throw failure(error, isRead)
      })
      const shown = await bodyOf(response).catch((error: unknown) => {
        throw failure(error, isRead)
      })
      return { status: response.status, headers: shownHeaders(response), body: shown }
    },
  }
}

const isReading = (method: string): boolean => method === 'GET' || method === 'HEAD'

/** Nobody can know whether a server heeds the idempotency key; a project may list hosts that do. */
function effectOf({ url, method }: HttpFetchArguments, idempotentHosts: readonly string[]): ToolEffect {
  if (isReading(method)) return 'readonly'
  const target = URL.parse(url)
  if (!target) return 'unsafe'
  const port = target.port || (target.protocol === 'https:' ? '443' : '80')
  const isKnown = idempotentHosts.some((host) => host === target.hostname || host === `${target.hostname}:${port}`)
  return isKnown ? 'keyed' : 'unsafe'
}

interface Write {
  method: string
  headers: Record<string, string>
  body: string | null
  signal: AbortSignal
}

/**
 * Follows redirects that read, and redirects within the origin. A write that is redirected to another origin is shown
 * to the model: the other server may not heed the key, and another call is judged by its own host.
 */
async function write(request: Fetch, url: string, { signal, ...made }: Write): Promise<Response> {
  let from = url
  for (let redirects = 0; ; redirects++) {
    const response = await request(from, { ...made, signal, redirect: 'manual' })
    const target = redirects < MOST_REDIRECTS ? targetOf(from, response) : null
    if (!target) return response
    const entries = Object.entries(made.headers).map(([name, value]): [string, string] => [name.toLowerCase(), value])
    const hop = { url: new URL(from), method: made.method, headers: entries, hasBody: made.body !== null }
    const next = nextHop(hop, response.status, target)
    const isRead = isReading(next.method)
    if (!isRead && target.origin !== hop.url.origin) return response
    await response.body?.cancel()
    if (!isRead) {
      from = target.href
      continue
    }
    const headers = next.headers
      .filter(([name]) => name !== 'idempotency-key')
      .map(([name, value]): [string, string] => [name, value])
    return request(target, { method: next.method, headers, signal }).catch((error: unknown) => {
      // The write itself was answered.
      throw new Error(`The write was answered with a redirect to ${target.href}. ${explain(error)}`)
    })
  }
}

function targetOf(from: string, response: Response): URL | null {
  try {
    return redirectTarget(new URL(from), response.status, response.headers.get('location'))
  } catch {
    return null // no URL: the answer is shown as it is
  }
}

function shownHeaders(response: Response): Record<string, string> {
  const shown = SHOWN_HEADERS.map((name) => [name, response.headers.get(name)])
  return Object.fromEntries(shown.filter(([, value]) => value !== null))
}

async function bodyOf(response: Response): Promise<unknown> {
  const type = response.headers.get('content-type') ?? ''
  const { bytes, truncated } = await readBody(response, MAX_BODY_BYTES)
  if (bytes.length === 0) return ''
  if (!isText(type, bytes)) {
    const size = truncated ? `more than ${bytes.length}` : String(bytes.length)
    return `[binary content, ${type || 'of unknown type'}, ${size} bytes; not shown]`
  }
  const text = decode(bytes, type)
  if (truncated) return `${text}\n[cut: the answer is longer than ${MAX_BODY_BYTES} bytes]`
  if (/[/+]json\b/i.test(type)) {
    try {
      return JSON.parse(text)
    } catch {
      return text // not the JSON that it claims to be: the model may still make sense of it
    }
  }
  return text
}

/** The content type decides. Without one, the presence of bytes that no text has decides. */
function isText(type: string, bytes: Buffer): boolean {
  if (/^(?:image\/(?!svg)|audio\/|video\/|font\/)/i.test(type)) return false
  return !bytes.subarray(0, 8_192).includes(0) || /charset=utf-?16/i.test(type)
}

function decode(bytes: Buffer, type: string): string {
  const label = /charset="?([\w.:-]+)/i.exec(type)?.[1] ?? 'utf-8'
  try {
    return new TextDecoder(label).decode(bytes)
  } catch {
    return bytes.toString('utf8')
  }
}

/** A write whose request was sent may have taken effect. Without an inner error the request was not even made. */
function failure(error: unknown, isRead: boolean): Error {
  const isLost = !isRead && error instanceof Error && error.cause instanceof Error && !isUnsent(error)
  return isLost ? new OutcomeUnknown(explain(error), { cause: error }) : new Error(explain(error), { cause: error })
}

/** undici says "fetch failed" and keeps the reason one level down. */
function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const inner = error.cause instanceof Error ? error.cause : null
  const code = inner !== null && 'code' in inner && typeof inner.code === 'string' ? ` (${inner.code})` : ''
  return inner === null ? error.message : `The request failed: ${inner.message || inner.name}${code}.`
}
