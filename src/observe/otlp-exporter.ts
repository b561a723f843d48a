// Sends spans by OTLP through the given `fetch`. OpenTelemetry's own exporter would bypass egress.
import { setTimeout as wait } from 'node:timers/promises'
import { JsonTraceSerializer, ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer'
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace'
import type { TraceTarget } from './tracing.ts'

const FORMATS = {
  json: { serializer: JsonTraceSerializer, contentType: 'application/json' },
  protobuf: { serializer: ProtobufTraceSerializer, contentType: 'application/x-protobuf' },
}
const ANSWERS_WITHIN_MS = 10_000
const MOST_TRIES = 4
const FIRST_WAIT_MS = 500
const LONGEST_WAIT_MS = 5_000
/** The statuses after which the specification of OTLP tells a client to try again. */
const PASSING = [429, 502, 503, 504]

type Fetch = typeof globalThis.fetch

/** `isOver` gives up the spans that are being sent. */
export function createOtlpExporter(target: TraceTarget, fetch: Fetch, isOver: AbortSignal): SpanExporter {
  const { serializer, contentType } = FORMATS[target.format]
  const underWay = new Set<Promise<void>>()

  async function send(spans: ReadableSpan[]): Promise<void> {
    const body = serializer.serializeRequest(spans)
    if (!body) throw new Error('the spans could not be written')
    for (let tries = 1; ; tries += 1) {
      const failure = await post(body)
      if (!failure) return
      if (!failure.isPassing || tries === MOST_TRIES || isOver.aborted) throw failure.error
      await pause(Math.max(failure.waitMs, FIRST_WAIT_MS * 2 ** (tries - 1)))
    }
  }

  async function post(body: Uint8Array): Promise<{ error: Error; isPassing: boolean; waitMs: number } | null> {
    try {
      const answer = await fetch(target.url, {
        method: 'POST',
        headers: { ...target.headers, 'content-type': contentType },
        body: new Uint8Array(body),
        signal: AbortSignal.any([isOver, AbortSignal.timeout(ANSWERS_WITHIN_MS)]),
      })
      await answer.body?.cancel()
      if (answer.ok) return null
      const error = new Error(`the collector answered ${answer.status}`)
      return { error, isPassing: PASSING.includes(answer.status), waitMs: retryAfterMs(answer) }
    } catch (error) {
      return { error: error instanceof Error ? error : new Error(String(error)), isPassing: true, waitMs: 0 }
    }
  }

  const pause = (waitMs: number): Promise<void> =>
    wait(Math.min(waitMs, LONGEST_WAIT_MS), undefined, { signal: isOver }).catch(() => {})

  return {
    export(spans, done) {
      const sending: Promise<void> = send(spans).then(
        () => done({ code: 0 }),
        (error: Error) => done({ code: 1, error }),
      )
      underWay.add(sending)
      void sending.finally(() => underWay.delete(sending))
    },
    forceFlush: async () => void (await Promise.allSettled(underWay)),
    shutdown: async () => void (await Promise.allSettled(underWay)),
  }
}

function retryAfterMs(answer: Response): number {
  const text = answer.headers.get('retry-after') ?? ''
  return /^\d{1,3}$/.test(text) ? Number(text) * 1_000 : 0
}
