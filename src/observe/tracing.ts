import type { Log } from '../kernel/log.ts'
import { createRedactor, type Redactor } from './redact.ts'

export type SpanAttributes = Readonly<Record<string, string | number | boolean | readonly string[] | null | undefined>>

export interface Span {
  /** W3C trace context: give it to another process, or keep it with a parked run, as `parent` of later spans. Null when
   * nothing is traced. */
  readonly traceparent: string | null
  set(attributes: SpanAttributes): void
  event(name: string, attributes?: SpanAttributes): void
}

export interface SpanOptions {
  readonly parent?: string | null
  readonly kind?: 'internal' | 'server' | 'client'
}

export interface Tracer {
  /** Runs `work` inside a span, nested in the span this is called from unless a parent is given. Answers what `work`
   * answers and throws what it throws; tracing itself never fails the caller. */
  span<T>(
    name: string,
    attributes: SpanAttributes,
    work: (span: Span) => Promise<T> | T,
    options?: SpanOptions,
  ): Promise<T>
}

export interface Tracing extends Tracer {
  /** Sends what is left, for at most this long. Never throws. */
  stop(timeoutMs?: number): Promise<void>
}

export interface TracingOptions {
  /** OTEL_EXPORTER_OTLP_ENDPOINT, the base without /v1/traces. None: no tracing, and none of its code is loaded. */
  readonly otlpEndpoint?: string | null
  readonly serviceName: string
  readonly version: string
  readonly headers?: Readonly<Record<string, string>>
  /** Prompts, answers, tool arguments and results are content: not recorded unless allowed here. */
  readonly recordContent?: boolean
  /** Hears of the first failure of each outage of the collector. A logger of this folder brings its redactor along. */
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
  // Loaded here only: OpenTelemetry costs 200 ms and 20 MB at a start (measured).
  const { createOtlpTracing } = await import('./otlp-tracing.ts')
  return createOtlpTracing({ ...options, otlpEndpoint, redactor })
}
