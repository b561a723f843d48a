// Readers of the streams of /v1/agent, in both formats.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http'
import type { AgentRunAnswer } from '../../src/kernel/supervisor.ts'
import { ADMIN_TOKEN } from './app.ts'
import type { createSupervisor } from './supervisor.ts'

export interface Told {
  event_type: 'token' | 'status_update' | 'final'
  data: Record<string, unknown>
}
export interface Streamed extends Told {
  /** Null for parts of a text, and for lines of JSON. */
  id: number | null
}
export interface Final {
  status: string
  output: AgentRunAnswer['result']['output']
  error?: { code: string; message: string; details: Record<string, unknown> | null }
  run_id: string
}
type Kit = Pick<Awaited<ReturnType<typeof createSupervisor>>, 'app' | 'headers'>

export const NDJSON = 'application/x-ndjson'
export const SSE = 'text/event-stream'
export const FORMS = { NDJSON, SSE }

export const parseStream = (accept: string, text: string): Streamed[] =>
  accept === SSE ? text.split('\n\n').flatMap(parseBlock) : text.split('\n').flatMap(parseLine)

const parseLine = (line: string): Streamed[] => (line === '' ? [] : [{ ...JSON.parse(line), id: null }])

function parseBlock(block: string): Streamed[] {
  if (block === '' || block.startsWith(':')) return []
  const fields = new Map(block.split('\n').map((line) => [line.split(':', 1)[0] ?? '', line.replace(/^\w+: /, '')]))
  const data: Told = JSON.parse(fields.get('data') ?? '')
  assert.equal(fields.get('event'), data.event_type)
  const id = fields.get('id')
  return [{ ...data, id: id === undefined ? null : Number(id) }]
}

export const isToken = ({ event_type: type }: Told): boolean => type === 'token'
export const isFinal = ({ event_type: type }: Told): boolean => type === 'final'

/** The text that a reader has in the end: the tokens since the last reset. */
export function textOf(events: readonly Told[]): string {
  const reset = events.findLastIndex(({ event_type: type, data }) => type === 'status_update' && data.reset === true)
  return events
    .slice(reset + 1)
    .flatMap((event) => (isToken(event) ? [String(event.data.text)] : []))
    .join('')
}

export function finalOf(events: readonly Told[]): Final {
  assert.deepEqual(
    events.flatMap((event, place) => (isFinal(event) ? [place] : [])),
    [events.length - 1],
    'there is one final event, and it is the last',
  )
  return events.at(-1)?.data as unknown as Final // each test asserts its fields
}

const addresses = new WeakMap<Kit['app'], Promise<string>>()
export function addressOf({ app }: Pick<Kit, 'app'>): Promise<string> {
  const address = addresses.get(app) ?? app.listen({ port: 0, host: '127.0.0.1' })
  addresses.set(app, address)
  return address
}

/** Reads the whole stream of a task, over a real connection. */
export async function streamTask(
  kit: Kit,
  task: string,
  { accept = NDJSON, options = {} }: { accept?: string | undefined; options?: object } = {},
) {
  const answer = await fetch(`${await addressOf(kit)}/v1/agent/run`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json', ...kit.headers, accept },
    body: JSON.stringify({ input: { task }, options: { ...options, stream: true } }),
  })
  const text = await answer.text()
  assert.equal(answer.status, 200, text)
  return { headers: Object.fromEntries(answer.headers), events: parseStream(accept, text) }
}

/** Reads the whole stream of a run's events, after an event that was seen. */
export async function readEvents(
  kit: Kit,
  runId: string,
  { accept = NDJSON, after }: { accept?: string; after?: number | undefined } = {},
): Promise<Streamed[]> {
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}`, ...kit.headers, accept }
  const answer = await fetch(`${await addressOf(kit)}/v1/agent/runs/${runId}/events`, {
    headers: after === undefined ? headers : { ...headers, 'last-event-id': String(after) },
  })
  const text = await answer.text()
  assert.equal(answer.status, 200, text)
  assert.equal(answer.headers.get('x-run-id'), runId)
  return parseStream(accept, text)
}

export interface Opened {
  response: IncomingMessage
  /** The events that were read. */
  events: Streamed[]
  leave(): void
  /** Reads until an event for which `isLast` is true; null at the end of the stream. */
  until(isLast: (event: Streamed) => boolean): Promise<Streamed | null>
}

interface Sent {
  headers?: object
  body?: object | undefined
  accept?: string
}

/** Opens a stream over a connection of its own. */
export async function send(kit: Kit, path: string, { headers = {}, body, accept = SSE }: Sent): Promise<ClientRequest> {
  const sent = httpRequest(`${await addressOf(kit)}${path}`, {
    method: body ? 'POST' : 'GET',
    agent: false,
    headers: {
      authorization: `Bearer ${ADMIN_TOKEN}`,
      ...kit.headers,
      accept,
      ...(body ? { 'content-type': 'application/json' } : {}),
      ...headers,
    },
  })
  sent.end(body ? JSON.stringify(body) : undefined)
  return sent
}

/** An open stream over a connection of its own, read event by event. */
export async function openStream(kit: Kit, path: string, { accept = SSE, ...options }: Sent = {}): Promise<Opened> {
  const sent = await send(kit, path, { accept, ...options })
  const [response] = (await once(sent, 'response')) as [IncomingMessage] // as node:http emits it
  // After the reader has left, errors of the connection do not matter.
  sent.on('error', () => {})
  response.setEncoding('utf8')
  const events: Streamed[] = []
  const unread: Streamed[] = []
  const separator = accept === SSE ? '\n\n' : '\n'
  let rest = ''
  const pieces = response[Symbol.asyncIterator]()
  return {
    response,
    events,
    leave: () => void sent.destroy(),
    async until(isLast) {
      for (;;) {
        for (let next = unread.shift(); next; next = unread.shift()) {
          events.push(next)
          if (isLast(next)) return next
        }
        const { value, done } = await pieces.next()
        if (done) return null
        const blocks = (rest + value).split(separator)
        rest = blocks.pop() ?? ''
        unread.push(...blocks.flatMap((block) => parseStream(accept, block)))
      }
    },
  }
}
