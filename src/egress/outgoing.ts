import { type BodyInit, type Dispatcher, FormData, type RequestRedirect, fetch as undiciFetch } from 'undici'
import { parseHttpUrl } from './http-url.ts'
import type { Hop } from './redirects.ts'
import { findRefusal } from './refused.ts'

/** A request taken apart, so that it can be sent again to the target of a redirect. */
export interface Outgoing {
  readonly hop: Hop
  readonly body: BodyInit | null
  readonly signal: AbortSignal | null
  readonly redirect: RequestRedirect
}

type FetchInput = Parameters<typeof globalThis.fetch>[0]
type FetchInit = Parameters<typeof globalThis.fetch>[1]

/** Takes only the listed fields from the caller: a caller's own `dispatcher` would bypass the check. */
export async function readRequest(input: FetchInput, init: FetchInit): Promise<Outgoing> {
  const request = input instanceof Object && 'url' in input ? input : null
  const url = parseHttpUrl(request === null ? String(input) : request.url)
  url.hash = ''
  const body = init?.body === undefined ? await requestBody(request) : ownBody(init.body)
  const headers = new Headers(init?.headers ?? request?.headers)
  return {
    hop: {
      url,
      method: (init?.method ?? request?.method ?? 'GET').toUpperCase(),
      headers: [...headers],
      hasBody: body !== null,
    },
    body,
    signal: init?.signal ?? request?.signal ?? null,
    redirect: init?.redirect ?? request?.redirect ?? 'follow',
  }
}

export async function send(request: Outgoing, hop: Hop, dispatcher: Dispatcher): Promise<Response> {
  const isStream = hop.hasBody && isOneShot(request.body)
  if (isStream && hop !== request.hop) throw new TypeError('A redirect asked for a streamed body a second time.')
  try {
    const response = await undiciFetch(hop.url, {
      method: hop.method,
      headers: hop.headers.map(([name, value]): [string, string] => [name, value]),
      body: hop.hasBody ? request.body : null,
      signal: request.signal,
      redirect: request.redirect === 'error' ? 'error' : 'manual',
      dispatcher,
      ...(isStream ? { duplex: 'half' } : {}),
    })
    // The global types describe the undici inside Node; the imported undici is a newer one with the same interface.
    return response as unknown as Response
  } catch (error) {
    throw findRefusal(error) ?? error
  }
}

async function requestBody(request: Request | null): Promise<BodyInit | null> {
  return request === null || request.body === null ? null : request.arrayBuffer()
}

/** undici knows only its own FormData; a global FormData would be sent as "[object FormData]". */
function ownBody(body: NonNullable<FetchInit>['body']): BodyInit | null {
  // The other kinds of body are classes of Node itself, the same for both.
  if (!(body instanceof globalThis.FormData)) return (body ?? null) as BodyInit | null
  const form = new FormData()
  for (const [name, value] of body) form.append(name, value)
  return form
}

function isOneShot(body: BodyInit | null): boolean {
  return body instanceof Object && Symbol.asyncIterator in body && !(body instanceof Blob)
}
