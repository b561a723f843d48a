import type { Log } from '../kernel/log.ts'
import { createRedactor, type Redactor } from './redact.ts'

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

export interface Tracing extends Tracer {
  /** Sends the remaining spans, for at most this long. Never throws. */
  stop(timeoutMs?: number): Promise<void>
}

export interface TracingOptions {
  /**
   * OTEL_EXPORTER_OTLP_ENDPOINT, the base without /v1/traces. Without it nothing is traced, and no code for it loaded.
   */
  readonly otlpEndpoint?: string | null
  readonly serviceName: string
  readonly version: string
  readonly headers?: Readonly<Record<string, string>>
  /** Prompts, answers, tool arguments and results are content, which is recorded only if this is true. */
  readonly recordContent?: boolean
  /**
   * Is told of the first failure of each outage of the collector. A logger of this folder brings its redactor along.
   */
  readonly log: Log & { readonly redactor?: Redactor }
  readonly redactor?: Redactor
}

const noSpan: Span = { traceparent: null, set: () => {}, event: () => {} }

export const noTracing: Tracing = {
  span: async (_name, _attributes, work) => work(noSpan),
  stop: async () => {},
}

export async function createTracing(options: TracingOptions): Promise<Tracing> {
  const { otlpEndpoint, redactor = options.log.redactor ?? createRedactor() } = options
  if (!otlpEndpoint) return noTracing
  // OpenTelemetry is loaded only here: it costs 200 ms and 20 MB at a start (measured).
  const { createOtlpTracing } = await import('./otlp-tracing.ts')
  return createOtlpTracing({ ...options, otlpEndpoint, redactor })
}
