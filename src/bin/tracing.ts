import type { Egress } from '../egress/egress.ts'
import { createTracing } from '../observe/create-tracing.ts'
import { createLangsmithUrls, langsmithTarget } from '../observe/langsmith.ts'
import type { Logger } from '../observe/logger.ts'
import type { TracePlace } from '../observe/trace-ids.ts'
import { type TraceTarget, type Tracing, tracesUrl } from '../observe/tracing.ts'
import type { Config } from './config.ts'
import { version } from './version.ts'

type TraceConfig = Pick<Config, 'otlpEndpoint' | 'otlpHeaders' | 'langsmith' | 'traceUrl'>

export function openTracing(config: TraceConfig, egress: Egress, log: Logger): Promise<Tracing> {
  for (const secret of [config.langsmith?.key, ...Object.values(config.otlpHeaders)]) {
    if (secret) log.registerSecret(secret)
  }
  const { otlpEndpoint, otlpHeaders: headers } = config
  const targets: TraceTarget[] = [
    ...(otlpEndpoint === null ? [] : [{ url: tracesUrl(otlpEndpoint), headers, format: 'json' as const }]),
    ...(config.langsmith ? [langsmithTarget(config.langsmith)] : []),
  ]
  return createTracing({ targets, fetch: egress.fetch('trusted'), serviceName: 'muster', version, log })
}

/** The address at which people see a span; undefined if there is none. */
export function traceUrls(
  config: TraceConfig,
  egress: Egress,
  log: Logger,
): ((place: TracePlace) => string | null) | undefined {
  const { traceUrl, langsmith } = config
  if (traceUrl !== null) {
    return ({ traceId, spanId }) => traceUrl.replaceAll('{trace_id}', traceId).replaceAll('{span_id}', spanId)
  }
  return langsmith ? createLangsmithUrls({ langsmith, fetch: egress.fetch('trusted'), log }) : undefined
}
