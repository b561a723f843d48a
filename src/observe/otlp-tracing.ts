// The OpenTelemetry side of tracing.ts. Nothing is registered globally: the current span is in a storage of this file,
// so two instances in one process (tests) do not mix, and libraries that look for a global tracer cannot add spans that
// skip the redaction.

import { AsyncLocalStorage } from 'node:async_hooks'
import {
  type Context,
  type Span as OtelSpan,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { BatchSpanProcessor, type SpanExporter, TracerProvider } from '@opentelemetry/sdk-trace'
import type { Log } from '../kernel/log.ts'
import type { Redactor } from './redact.ts'
import { presentAttributes } from './span-attributes.ts'
import type { Span, SpanAttributes, SpanOptions, Tracing, TracingOptions } from './tracing.ts'

const stopWithinMs = 5_000
const longestValue = 2_048
const kinds = { internal: SpanKind.INTERNAL, server: SpanKind.SERVER, client: SpanKind.CLIENT }

export function createOtlpTracing(options: TracingOptions & { otlpEndpoint: string; redactor: Redactor }): Tracing {
  const { redactor, log, recordContent = false } = options
  const exporter = new OTLPTraceExporter({ url: tracesUrl(options.otlpEndpoint), headers: { ...options.headers } })
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': options.serviceName, 'service.version': options.version }),
    spanProcessors: [new BatchSpanProcessor({ exporter: reportOutages(exporter, log) })],
    spanLimits: { attributeValueLengthLimit: longestValue },
  })
  const tracer = provider.getTracer('muster', options.version)
  const current = new AsyncLocalStorage<Context>()
  const present = (attributes: SpanAttributes) => presentAttributes(attributes, redactor, { recordContent })

  function start(name: string, attributes: SpanAttributes, { parent, kind = 'internal' }: SpanOptions): OtelSpan {
    const settings = { kind: kinds[kind], attributes: present(attributes) }
    return tracer.startSpan(redactor.scrub(name), settings, contextOf(parent) ?? current.getStore() ?? ROOT_CONTEXT)
  }

  return {
    async span(name, attributes, work, spanOptions = {}) {
      const span = start(name, attributes, spanOptions)
      try {
        return await current.run(trace.setSpan(ROOT_CONTEXT, span), async () => work(face(span)))
      } catch (error) {
        markFailed(span, error)
        throw error
      } finally {
        span.end()
      }
    },
    async stop(timeoutMs = stopWithinMs) {
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, timeoutMs)
      })
      // The exporter has reported a failure already.
      await Promise.race([provider.shutdown().catch(() => {}), late])
      clearTimeout(timer)
    },
  }

  function face(span: OtelSpan): Span {
    return {
      traceparent: formatTraceparent(span.spanContext()),
      set: (attributes) => void span.setAttributes(present(attributes)),
      event: (name, attributes = {}) => void span.addEvent(redactor.scrub(name), present(attributes)),
    }
  }

  /** Messages of errors quote requests and answers, so they are content. */
  function markFailed(span: OtelSpan, error: unknown): void {
    const type = error instanceof Error ? error.name : typeof error
    span.setAttribute('error.type', redactor.scrub(type))
    const message = recordContent && error instanceof Error ? redactor.scrub(error.message) : redactor.scrub(type)
    span.setStatus({ code: SpanStatusCode.ERROR, message: message.slice(0, longestValue) })
  }
}

/** Logs the first failure of an outage and its end. The processor is told of no failure: it would only give up the
 * batches after the failed one when it stops. */
function reportOutages(exporter: OTLPTraceExporter, log: Log): SpanExporter {
  const success = 0
  let isDown = false
  return {
    export(spans, done) {
      exporter.export(spans, ({ code, error }) => {
        const failed = code !== success
        if (failed && !isDown) log.warn({ err: error }, 'Traces could not be sent; they are dropped until they can.')
        if (!failed && isDown) log.info({}, 'Traces are being sent again.')
        isDown = failed
        done({ code: success })
      })
    },
    shutdown: () => exporter.shutdown(),
    forceFlush: () => exporter.forceFlush(),
  }
}

function tracesUrl(endpoint: string): string {
  const base = endpoint.replace(/\/+$/, '')
  return base.endsWith('/v1/traces') ? base : `${base}/v1/traces`
}

function formatTraceparent({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`
}

function contextOf(traceparent: string | null | undefined): Context | null {
  const match = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(traceparent ?? '')
  const [, traceId, spanId, flags] = match ?? []
  if (traceId === undefined || spanId === undefined || flags === undefined) return null
  const parent = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true }
  return trace.setSpanContext(ROOT_CONTEXT, parent)
}
