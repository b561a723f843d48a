// Redirects as fetch defines them, plus one rule: across origins only harmless headers are sent on. Fetch drops only
// Authorization, which would hand `x-api-key` and signatures to any server that the first one points at.

/** The parts of a request that a redirect may change. */
export interface Hop {
  readonly url: URL
  readonly method: string
  readonly headers: readonly (readonly [string, string])[]
  readonly hasBody: boolean
}

const redirectStatuses = new Set([301, 302, 303, 307, 308])
const harmlessHeaders = new Set([
  'accept',
  'accept-encoding',
  'accept-language',
  'content-encoding',
  'content-language',
  'content-type',
  'if-modified-since',
  'if-none-match',
  'range',
  'user-agent',
])
const bodyHeaders = new Set([
  'content-encoding',
  'content-language',
  'content-length',
  'content-location',
  'content-type',
])

/** The target of a redirect, or null if the response is not a redirect. Throws TypeError if Location is not a URL. */
export function redirectTarget(from: URL, status: number, location: string | null): URL | null {
  if (!redirectStatuses.has(status) || location === null) return null
  return new URL(location, from)
}

export function nextHop(hop: Hop, status: number, url: URL): Hop {
  const toGet = status === 303 ? hop.method !== 'GET' && hop.method !== 'HEAD' : status < 303 && hop.method === 'POST'
  const sameOrigin = url.origin === hop.url.origin
  return {
    url,
    method: toGet ? 'GET' : hop.method,
    hasBody: hop.hasBody && !toGet,
    headers: hop.headers.filter(
      ([name]) => (sameOrigin || harmlessHeaders.has(name)) && !(toGet && bodyHeaders.has(name)),
    ),
  }
}
