import type { Log } from '../kernel/log.ts'
import { createRedactor, type Redactor } from './redact.ts'
import type { TracePlace } from './trace-ids.ts'

export type SpanAttributes = Readonly<Record<string, string | number | boolean | readonly string[] | null | undefined>>

export interface Span {
  /** The W3C trace context, for another process or a parked run to use as `parent` of later spans. Null when nothing is
   * traced. */
  readonly traceparent: string | null
  set(attributes: SpanAttributes): void
  event(name: string, attributes?: SpanAttributes): void
}

export interface SpanOptions {
  readonly parent?: string | null
  readonly kind?: 'internal' | 'server' | 'client'
}

export interface Tracer {
  /** Runs `work` inside a span, nested in the current span unless a parent is given. Returns the result of `work` and
   * throws its errors; tracing itself never fails the caller. */
  span<T>(
    name: string,
    attributes: SpanAttributes,
    work: (span: Span) => Promise<T> | T,
    options?: SpanOptions,
  ): Promise<T>
}

/** A span of something that is over, at a place in its trace that is known. */
export interface PastSpan extends TracePlace {
  readonly name: string
  /** Null at the top of the trace. */
  readonly parentId: string | null
  readonly kind?: SpanOptions['kind']
  readonly startedAt: Date
  readonly endedAt: Date
  readonly attributes: SpanAttributes
  /** The kind of failure, if it failed. */
  readonly failure?: string | null
}

export interface Tracing extends Tracer {
  record(span: PastSpan): void
  /** Sends the remaining spans, for at most this long. Never throws. */
  stop(timeoutMs?: number): Promise<void>
}

/** A place where spans are sent. */
export interface TraceTarget {
  /** The whole address, with its path. */
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly format: 'json' | 'protobuf'
  /** Only the spans of runs are sent, and no requests. */
  readonly runsOnly?: boolean
}

export interface TracingOptions {
  /** Without a target nothing is traced, and no code for it loaded. */
  readonly targets: readonly TraceTarget[]
  /** The `fetch` of the `trusted` policy, because the operator sets the addresses. */
  readonly fetch: typeof globalThis.fetch
  readonly serviceName: string
  readonly version: string
  /**
   * Is told of the first failure of each outage of the collector. A logger of this folder brings its redactor along.
   */
  readonly log: Log & { readonly redactor?: Redactor }
  readonly redactor?: Redactor
}

const noSpan: Span = { traceparent: null, set: () => {}, event: () => {} }

export const noTracing: Tracing = {
  span: async (_name, _attributes, work) => work(noSpan),
  record: () => {},
  stop: async () => {},
}

export async function createTracing(options: TracingOptions): Promise<Tracing> {
  const { targets, redactor = options.log.redactor ?? createRedactor() } = options
  if (targets.length === 0) return noTracing
  // OpenTelemetry is loaded only here: it costs 200 ms and 20 MB at a start (measured).
  const { createOtlpTracing } = await import('./otlp-tracing.ts')
  return createOtlpTracing({ ...options, redactor })
}

/** The address for traces below the base that OTEL_EXPORTER_OTLP_ENDPOINT names. */
export function tracesUrl(endpoint: string): string {
  const base = endpoint.replace(/\/+$/, '')
  return base.endsWith('/v1/traces') ? base : `${base}/v1/traces`
}
