// Exports a trace for other tools: Chrome's trace viewer and Perfetto, collectors of OpenTelemetry, and spreadsheets.
import { createHash } from 'node:crypto'
import type { FlowTask } from './trace.ts'

export const exportFormats = ['chrome', 'otlp', 'csv'] as const
export type ExportFormat = (typeof exportFormats)[number]

export interface ExportedFlow {
  id: string
  name: string
  status: string
  error: string | null
  startedAt: Date
  /** The end, or the moment of the export: tasks under way are shown up to that moment. */
  until: Date
  tasks: readonly FlowTask[]
}

const exporters: Record<ExportFormat, { contentType: string; write: (flow: ExportedFlow) => string }> = {
  chrome: { contentType: 'application/json; charset=utf-8', write: (flow) => JSON.stringify(chromeTrace(flow)) },
  otlp: { contentType: 'application/json; charset=utf-8', write: (flow) => JSON.stringify(otlpTrace(flow)) },
  csv: { contentType: 'text/csv; charset=utf-8', write: csvTrace },
}

export function exportTrace(flow: ExportedFlow, format: ExportFormat): { contentType: string; text: string } {
  const { contentType, write } = exporters[format]
  return { contentType, text: write(flow) }
}

interface Span {
  task: FlowTask
  startMs: number
  endMs: number
}

function spansOf({ tasks, until }: ExportedFlow): Span[] {
  return tasks
    .flatMap((task) => {
      if (task.start_at === null) return []
      const startMs = Date.parse(task.start_at)
      const endMs = task.end_at === null ? until.getTime() : Date.parse(task.end_at)
      return [{ task, startMs, endMs: Math.max(startMs, endMs) }]
    })
    .toSorted((a, b) => a.startMs - b.startMs)
}

/** Complete events of the Trace Event Format. Times are microseconds; tasks that overlap have lanes of their own. */
function chromeTrace(flow: ExportedFlow) {
  const shared = { pid: 1, cat: 'flow' }
  const lanes: number[] = []
  const laneOf = ({ startMs, endMs }: Span): number => {
    const free = lanes.findIndex((busyUntil) => busyUntil <= startMs)
    const lane = free === -1 ? lanes.length : free
    lanes[lane] = endMs
    return lane + 1
  }
  const startMs = flow.startedAt.getTime()
  const whole = { name: flow.name, ph: 'X', ts: startMs * 1_000, dur: (flow.until.getTime() - startMs) * 1_000 }
  const spans = spansOf(flow).map((span) => ({
    ...shared,
    name: span.task.name,
    ph: 'X',
    tid: laneOf(span),
    ts: span.startMs * 1_000,
    dur: (span.endMs - span.startMs) * 1_000,
    args: argumentsOf(span.task),
  }))
  const named = (tid: number, name: string) => ({ ...shared, name: 'thread_name', ph: 'M', tid, ts: 0, args: { name } })
  return {
    displayTimeUnit: 'ms',
    traceEvents: [
      { ...shared, name: 'process_name', ph: 'M', tid: 0, ts: 0, args: { name: `flow run ${flow.id}` } },
      named(0, 'flow'),
      ...lanes.map((_, lane) => named(lane + 1, `lane ${lane + 1}`)),
      { ...shared, ...whole, tid: 0, args: { status: flow.status, error: flow.error } },
      ...spans,
    ],
  }
}

function argumentsOf({ id, kind, parent_id, depends_on, status, attempts, usage, run_id, error }: FlowTask) {
  return { id, kind, parent_id, depends_on, status, attempts, usage, run_id, error }
}

/** The JSON form of an ExportTraceServiceRequest: ids are hexadecimal, 64-bit integers are texts. */
function otlpTrace(flow: ExportedFlow) {
  const traceId = flow.id.replaceAll('-', '').toLowerCase()
  const rootId = spanIdOf(flow.id, '')
  const spans = spansOf(flow)
  const begun = new Set(spans.map(({ task }) => task.id))
  const root = {
    traceId,
    spanId: rootId,
    name: flow.name,
    kind: 1,
    startTimeUnixNano: nanos(flow.startedAt.getTime()),
    endTimeUnixNano: nanos(flow.until.getTime()),
    attributes: [attribute('muster.flow_run.id', flow.id), attribute('muster.flow_run.status', flow.status)],
    status: statusOf(flow.status, flow.error),
  }
  const children = spans.map(({ task, startMs, endMs }) => ({
    traceId,
    spanId: spanIdOf(flow.id, task.id),
    parentSpanId: rootId,
    name: task.name,
    kind: 1,
    startTimeUnixNano: nanos(startMs),
    endTimeUnixNano: nanos(endMs),
    attributes: [
      attribute('muster.task.id', task.id),
      attribute('muster.task.kind', task.kind),
      attribute('muster.task.status', task.status),
      attribute('muster.task.attempts', task.attempts),
      ...(task.parent_id === null ? [] : [attribute('muster.task.parent_id', task.parent_id)]),
      ...(task.run_id === null ? [] : [attribute('muster.run.id', task.run_id)]),
      ...(task.usage ? [attribute('gen_ai.usage.input_tokens', task.usage.input_tokens)] : []),
      ...(task.usage ? [attribute('gen_ai.usage.output_tokens', task.usage.output_tokens)] : []),
    ],
    links: task.depends_on
      .filter((id) => begun.has(id))
      .map((id) => ({ traceId, spanId: spanIdOf(flow.id, id), attributes: [] })),
    status: statusOf(task.status, task.error),
  }))
  const resource = { attributes: [attribute('service.name', 'muster')] }
  return {
    resourceSpans: [{ resource, scopeSpans: [{ scope: { name: 'muster.flows' }, spans: [root, ...children] }] }],
  }
}

const spanIdOf = (flowRunId: string, leafId: string): string =>
  createHash('sha256').update(`${flowRunId} ${leafId}`).digest('hex').slice(0, 16)

const nanos = (ms: number): string => `${BigInt(Math.round(ms)) * 1_000_000n}`

const attribute = (key: string, value: string | number) => ({
  key,
  value: typeof value === 'number' ? { intValue: String(value) } : { stringValue: value },
})

function statusOf(status: string, error: string | null): { code: 0 | 1 | 2; message?: string } {
  if (status === 'completed') return { code: 1 }
  return ['failed', 'timed_out'].includes(status) ? { code: 2, message: error ?? status } : { code: 0 }
}

const COLUMNS = [
  ...['id', 'name', 'kind', 'parent_id', 'depends_on', 'worker', 'status', 'attempts'],
  ...['start_at', 'end_at', 'duration', 'error', 'run_id', 'input_tokens', 'output_tokens', 'cost_usd'],
] as const

/** The format is RFC 4180. */
function csvTrace({ tasks }: ExportedFlow): string {
  const rows = tasks.map((task) => {
    const { id, name, kind, parent_id, depends_on, worker, status, attempts, start_at, end_at, error, usage } = task
    const duration = start_at && end_at ? Date.parse(end_at) - Date.parse(start_at) : null
    const cells = [id, name, kind, parent_id, depends_on.join(';'), worker, status, attempts]
    const used = [usage?.input_tokens, usage?.output_tokens, usage?.cost_usd]
    return [...cells, start_at, end_at, duration, error, task.run_id, ...used]
  })
  return [COLUMNS, ...rows].map((row) => `${row.map(cell).join(',')}\r\n`).join('')
}

function cell(value: string | number | null | undefined): string {
  if (value === null || value === undefined) return ''
  const text = String(value)
  // A spreadsheet would take the text for a formula, and names are written by the author of the flow.
  const plain = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain
}
