// A collector for tests: it keeps the spans that reach it, in either of the two encodings.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { serveLocally } from './local-server.ts'
import type { Cleanup } from './process.ts'

export interface CollectedSpan {
  traceId: string
  spanId: string
  /** Empty at the top of a trace. */
  parentId: string
  name: string
  startMs: number
  endMs: number
  attributes: Record<string, unknown>
  isError: boolean
}

export interface Collected {
  path: string
  headers: IncomingMessage['headers']
  spans: CollectedSpan[]
}

export interface Collector {
  url: string
  posts: Collected[]
  spans(): CollectedSpan[]
  /** Requests that brought no traces. */
  others: { path: string; headers: IncomingMessage['headers'] }[]
}

/** `answer` is asked about every request that brings no traces. */
export async function startCollector(
  t: Cleanup,
  answer: (request: IncomingMessage, response: ServerResponse) => void = (_, response) => response.writeHead(404).end(),
): Promise<Collector> {
  const posts: Collected[] = []
  const others: Collector['others'] = []
  const url = await serveLocally(t, async (request, response) => {
    const { url: path = '', headers } = request
    const body = await buffer(request)
    if (!path.endsWith('/v1/traces')) {
      others.push({ path, headers })
      return answer(request, response)
    }
    const spans = headers['content-type'] === 'application/json' ? spansInJson(body) : spansInProtobuf(body)
    posts.push({ path, headers, spans })
    response.writeHead(200).end()
  })
  return { url, posts, others, spans: () => posts.flatMap((post) => post.spans) }
}

interface JsonSpan {
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  startTimeUnixNano: string
  endTimeUnixNano: string
  attributes: { key: string; value: Record<string, unknown> }[]
  status: { code?: number }
}

function spansInJson(body: Buffer): CollectedSpan[] {
  const { resourceSpans } = JSON.parse(body.toString()) as {
    resourceSpans: { scopeSpans: { spans: JsonSpan[] }[] }[]
  } // the exporter's own form, whose fields the tests assert
  return resourceSpans
    .flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))
    .map((span) => ({
      traceId: span.traceId,
      spanId: span.spanId,
      parentId: span.parentSpanId ?? '',
      name: span.name,
      startMs: Number(BigInt(span.startTimeUnixNano) / 1_000_000n),
      endMs: Number(BigInt(span.endTimeUnixNano) / 1_000_000n),
      attributes: Object.fromEntries(span.attributes.map(({ key, value }) => [key, plain(Object.values(value)[0])])),
      isError: span.status.code === 2,
    }))
}

const plain = (value: unknown): unknown => (typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value)

/** The part of opentelemetry/proto/trace/v1/trace.proto that the tests need, with the numbers of its fields. */
function spansInProtobuf(body: Buffer): CollectedSpan[] {
  const within = (message: Buffer, field: number): Buffer[] =>
    fieldsIn(message).flatMap((each) => (each.field === field && Buffer.isBuffer(each.value) ? [each.value] : []))
  const spans = within(body, 1).flatMap((resource) => within(resource, 2).flatMap((scope) => within(scope, 2)))
  return spans.map((span) => {
    const [traceId, spanId, parentId, name] = [1, 2, 4, 5].map((field) => within(span, field)[0] ?? Buffer.alloc(0))
    const time = (field: number): number =>
      Number(
        BigInt(
          fieldsIn(span)
            .find((each) => each.field === field)
            ?.value.toString() ?? '0',
        ) / 1_000_000n,
      )
    const pairs = within(span, 9).map((pair): [string, unknown] => {
      const value = fieldsIn(within(pair, 2)[0] ?? Buffer.alloc(0))[0]
      const shown = Buffer.isBuffer(value?.value) ? value.value.toString() : Number(value?.value)
      return [String(within(pair, 1)[0]), shown]
    })
    const status = fieldsIn(within(span, 15)[0] ?? Buffer.alloc(0)).find((each) => each.field === 3)
    return {
      traceId: traceId?.toString('hex') ?? '',
      spanId: spanId?.toString('hex') ?? '',
      parentId: parentId?.toString('hex') ?? '',
      name: name?.toString() ?? '',
      startMs: time(7),
      endMs: time(8),
      attributes: Object.fromEntries(pairs),
      isError: status?.value === 2n,
    }
  })
}

/** The fields of a message: numbers as bigint, everything with a length as bytes. */
function fieldsIn(message: Buffer): { field: number; value: bigint | Buffer }[] {
  const found: { field: number; value: bigint | Buffer }[] = []
  let at = 0
  const varint = (): bigint => {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = message[at++] ?? 0
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
  }
  while (at < message.length) {
    const tag = Number(varint())
    const field = tag >> 3
    const kind = tag & 7
    if (kind === 0) found.push({ field, value: varint() })
    else if (kind === 1) {
      found.push({ field, value: message.readBigUInt64LE(at) })
      at += 8
    } else if (kind === 5) {
      found.push({ field, value: BigInt(message.readUInt32LE(at)) })
      at += 4
    } else {
      const length = Number(varint())
      found.push({ field, value: message.subarray(at, at + length) })
      at += length
    }
  }
  return found
}
