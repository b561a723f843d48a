import type { Log } from '../kernel/log.ts'
import type { Redactor } from './redact.ts'
import type { TracePlace } from './trace-ids.ts'

export type SpanAttributes = Readonly<Record<string, string | number | boolean | readonly string[] | null | undefined>>

export interface Span {
  /** The W3C trace context, to be the `parent` of later spans. Null when nothing is traced. */
  readonly traceparent: string | null
  set(attributes: SpanAttributes): void
  event(name: string, attributes?: SpanAttributes): void
}

export interface SpanOptions {
  readonly parent?: string | null
  readonly kind?: 'internal' | 'server' | 'client'
}

export interface Tracer {
  /** Runs `work` inside a span, nested in the current one unless a parent is given. Tracing never fails the caller. */
  span<T>(
    name: string,
    attributes: SpanAttributes,
    work: (span: Span) => Promise<T> | T,
    options?: SpanOptions,
  ): Promise<T>
}

/** A span of work that is over, at a known place in its trace. */
export interface PastSpan extends TracePlace {
  readonly name: string
  /** Null at the top of the trace. */
  readonly parentId: string | null
  readonly kind?: SpanOptions['kind']
  readonly startedAt: Date
  readonly endedAt: Date
  readonly attributes: SpanAttributes
  /** The kind of failure, if the work failed. */
  readonly failure?: string | null
}

export interface Tracing extends Tracer {
  record(span: PastSpan): void
  /** Sends the remaining spans, for at most `timeoutMs`. Never throws. */
  stop(timeoutMs?: number): Promise<void>
}

export interface TraceTarget {
  /** The whole address, with its path. */
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly format: 'json' | 'protobuf'
  /** True if only the spans of runs are sent, and no requests. */
  readonly runsOnly?: boolean
}

export interface TracingOptions {
  /** Without a target nothing is traced, and no code for tracing is loaded. */
  readonly targets: readonly TraceTarget[]
  /** The `fetch` of the `trusted` policy, because the operator sets the addresses. */
  readonly fetch: typeof globalThis.fetch
  readonly serviceName: string
  readonly version: string
  /** Told of the first failure of each outage of the collector. A logger of this folder brings its redactor along. */
  readonly log: Log & { readonly redactor?: Redactor }
  readonly redactor?: Redactor
}

const noSpan: Span = { traceparent: null, set: () => {}, event: () => {} }

export const noTracing: Tracing = {
  span: async (_name, _attributes, work) => work(noSpan),
  record: () => {},
  stop: async () => {},
}

/** The address for traces below the base that OTEL_EXPORTER_OTLP_ENDPOINT names. */
export function tracesUrl(endpoint: string): string {
  const base = endpoint.replace(/\/+$/, '')
  return base.endsWith('/v1/traces') ? base : `${base}/v1/traces`
}
