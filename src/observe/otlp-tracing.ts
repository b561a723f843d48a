// The OpenTelemetry side of tracing.ts. Nothing is registered globally, so two instances in one process (tests) do not
// mix, and libraries that look for a global tracer cannot add spans that skip the redaction.

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
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  BatchSpanProcessor,
  RandomIdGenerator,
  type SpanExporter,
  type SpanProcessor,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { Log } from '../kernel/log.ts'
import { createOtlpExporter } from './otlp-exporter.ts'
import type { Redactor } from './redact.ts'
import { presentAttributes } from './span-attributes.ts'
import type { TracePlace } from './trace-ids.ts'
import type { PastSpan, Span, SpanAttributes, SpanOptions, TraceTarget, Tracing, TracingOptions } from './tracing.ts'

const stopWithinMs = 5_000
const longestValue = 2_048
const kinds = { internal: SpanKind.INTERNAL, server: SpanKind.SERVER, client: SpanKind.CLIENT }

/** Spans of runs, and of nothing else, have this attribute. */
const RUN = 'muster.run_id'

export function createOtlpTracing(options: TracingOptions & { redactor: Redactor }): Tracing {
  const { redactor, log } = options
  const isOver = new AbortController()
  const processorFor = (target: TraceTarget): SpanProcessor => {
    const exporter = reportOutages(createOtlpExporter(target, options.fetch, isOver.signal), log)
    const processor = new BatchSpanProcessor({ exporter })
    return target.runsOnly ? onlyRuns(processor) : processor
  }
  const ids = createIds()
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': options.serviceName, 'service.version': options.version }),
    spanProcessors: options.targets.map(processorFor),
    spanLimits: { attributeValueLengthLimit: longestValue },
    idGenerator: ids,
  })
  const tracer = provider.getTracer('muster', options.version)
  const current = new AsyncLocalStorage<Context>()
  const present = (attributes: SpanAttributes) => presentAttributes(attributes, redactor)

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
    record({ name, kind = 'internal', attributes, startedAt, endedAt, parentId, failure, ...place }: PastSpan) {
      const settings = { kind: kinds[kind], attributes: present(attributes), startTime: startedAt }
      const parent = parentId === null ? null : { traceId: place.traceId, spanId: parentId, traceFlags: SAMPLED }
      const context = parent ? trace.setSpanContext(ROOT_CONTEXT, parent) : ROOT_CONTEXT
      const span = ids.next(place, () => tracer.startSpan(redactor.scrub(name), settings, context))
      if (failure) {
        span.setAttribute('error.type', redactor.scrub(failure))
        span.setStatus({ code: SpanStatusCode.ERROR, message: redactor.scrub(failure) })
      }
      span.end(endedAt)
    },
    async stop(timeoutMs = stopWithinMs) {
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, timeoutMs)
      })
      // The exporter has reported a failure already.
      await Promise.race([provider.shutdown().catch(() => {}), late])
      clearTimeout(timer)
      isOver.abort()
    },
  }

  function face(span: OtelSpan): Span {
    return {
      traceparent: formatTraceparent(span.spanContext()),
      set: (attributes) => void span.setAttributes(present(attributes)),
      event: (name, attributes = {}) => void span.addEvent(redactor.scrub(name), present(attributes)),
    }
  }

  /** Messages of errors quote requests and answers, so they are content and left out. */
  function markFailed(span: OtelSpan, error: unknown): void {
    const type = redactor.scrub(error instanceof Error ? error.name : typeof error)
    span.setAttribute('error.type', type)
    span.setStatus({ code: SpanStatusCode.ERROR, message: type.slice(0, longestValue) })
  }
}

/** Logs the first failure of an outage and its end. The processor, if told, would give up all later batches. */
function reportOutages(exporter: SpanExporter, log: Log): SpanExporter {
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
    forceFlush: async () => exporter.forceFlush?.(),
  }
}

function onlyRuns(processor: SpanProcessor): SpanProcessor {
  return {
    onStart: (span, context) => processor.onStart(span, context),
    onEnd: (span) => {
      if (RUN in span.attributes) processor.onEnd(span)
    },
    forceFlush: () => processor.forceFlush(),
    shutdown: () => processor.shutdown(),
  }
}

const SAMPLED = 1

/** Makes random ids, except for a span whose place is given while it is made. */
function createIds() {
  const random = new RandomIdGenerator()
  let given: TracePlace | null = null
  return {
    generateTraceId: (): string => given?.traceId ?? random.generateTraceId(),
    generateSpanId: (): string => given?.spanId ?? random.generateSpanId(),
    next<Made>(place: TracePlace, make: () => Made): Made {
      given = place
      try {
        return make()
      } finally {
        given = null
      }
    },
  }
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
