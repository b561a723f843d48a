// The one way out. Every request on behalf of a person, a project or a model, and every trace, goes through `fetch` of
// this folder (enforced by `only-way-out.test.ts`). The form of each URL, every address a name resolves to, and each
// redirect are checked. Connections to the database do not go this way: the operator configures them.

import { parseAllow } from './allow.ts'
import { parseHttpUrl } from './http-url.ts'
import type { Outgoing } from './outgoing.ts'
import { nextHop, redirectTarget } from './redirects.ts'
import { EgressRefused } from './refused.ts'
import { boundLookup, type EgressPolicy, type Lookup, resolveChecked, systemLookup } from './resolve.ts'
import type { Sender } from './sender.ts'

/** The signature of the global `fetch`, so that SDKs accept this function instead. */
export type Fetch = typeof globalThis.fetch

export interface EgressOptions {
  /** MUSTER_EGRESS_ALLOW: private hosts that `public` requests may reach. Throws at creation when malformed. */
  readonly allow: readonly string[]
  readonly maxRedirects?: number
  readonly connectTimeoutMs?: number
  /** The longest time from the request to the response headers. */
  readonly headersTimeoutMs?: number
  /** The longest silence within a response body. */
  readonly bodyIdleTimeoutMs?: number
  readonly lookup?: Lookup
}

export interface Egress {
  /** Rejects with EgressRefused if the policy forbids the URL or a redirect, else like the global fetch. */
  fetch(policy: EgressPolicy): Fetch
  /** For routes that store a URL. Rejects with EgressRefused. An unresolvable name passes: each use judges it. */
  checkUrl(url: string | URL, policy: EgressPolicy): Promise<URL>
  /** Ends requests under way. */
  close(): Promise<void>
}

export function createEgress(options: EgressOptions): Egress {
  const allow = parseAllow(options.allow)
  const { maxRedirects = 3, connectTimeoutMs = 10_000 } = options
  const lookup = boundLookup(options.lookup ?? systemLookup, connectTimeoutMs)
  let opened: Promise<Sender> | null = null
  let isClosed = false
  const open = (): Promise<Sender> => {
    if (isClosed) throw new Error('The way out is closed.')
    opened ??= import('./sender.ts').then(({ createSender }) =>
      createSender({
        allow,
        lookup,
        connectTimeoutMs,
        headersTimeoutMs: options.headersTimeoutMs ?? 120_000,
        bodyIdleTimeoutMs: options.bodyIdleTimeoutMs ?? 300_000,
      }),
    )
    return opened
  }

  async function follow(sender: Sender, request: Outgoing, policy: EgressPolicy): Promise<Response> {
    let hop = request.hop
    let trust = policy
    for (let redirects = 0; ; redirects += 1) {
      const response = await sender.send(request, hop, trust)
      const target = request.redirect === 'follow' ? targetOf(hop.url, response) : null
      if (target === null) {
        if (redirects > 0) Object.defineProperty(response, 'redirected', { value: true })
        return response
      }
      await response.body?.cancel()
      if (redirects === maxRedirects) throw new EgressRefused(hop.url.hostname, 'too_many_redirects')
      const next = nextHop(hop, response.status, parseHttpUrl(target))
      // The admin vouched for one origin, not for the targets of its redirects, nor for a redirect back to it.
      if (next.url.origin !== hop.url.origin) trust = 'public'
      hop = next
    }
  }

  return {
    fetch: (policy) => async (input, init) => {
      const sender = await open()
      return follow(sender, await sender.readRequest(input, init), policy)
    },
    async checkUrl(url, policy) {
      const parsed = parseHttpUrl(url)
      const hostname = parsed.hostname.replace(/^\[|\]$/g, '')
      const port = Number(parsed.port) || (parsed.protocol === 'https:' ? 443 : 80)
      await resolveChecked({ hostname, port, policy }, allow, lookup).catch((error: unknown) => {
        if (error instanceof EgressRefused) throw error
      })
      return parsed
    },
    async close() {
      isClosed = true
      await (await opened)?.close()
    },
  }
}

function targetOf(from: URL, response: Response): URL | null {
  try {
    return redirectTarget(from, response.status, response.headers.get('location'))
  } catch {
    throw new EgressRefused(from.hostname, 'invalid_url')
  }
}
