import { createRedactor } from './redact.ts'
import { noTracing, type Tracing, type TracingOptions } from './tracing.ts'

export async function createTracing(options: TracingOptions): Promise<Tracing> {
  const { targets, redactor = options.log.redactor ?? createRedactor() } = options
  if (targets.length === 0) return noTracing
  // OpenTelemetry is loaded only here: it costs 200 ms and 20 MB at a start (measured).
  const { createOtlpTracing } = await import('./otlp-tracing.ts')
  return createOtlpTracing({ ...options, redactor })
}
