import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { type ExportedFlow, exportTrace } from './export-trace.ts'
import type { FlowTask } from './trace.ts'

const at = (ms: number): string => new Date(1_700_000_000_000 + ms).toISOString()
const task = (id: string, from: number | null, to: number | null, more: Partial<FlowTask> = {}): FlowTask => ({
  ...{ id, name: id, kind: 'function', parent_id: 'root', depends_on: [], worker: null, status: 'completed' },
  ...{ attempts: 1, usage: null, error: null },
  ...{ start_at: from === null ? null : at(from), end_at: to === null ? null : at(to) },
  ...more,
})
const flow: ExportedFlow = {
  ...{ id: '0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b', name: 'flow', status: 'failed', error: 'broken' },
  ...{ startedAt: new Date(1_700_000_000_000), until: new Date(1_700_000_000_100) },
  tasks: [
    task('a', 0, 40),
    task('b', 10, 60, { status: 'failed', error: 'a "quoted", long\nerror' }),
    task('c', 40, null, { status: 'running', depends_on: ['a', 'd'] }),
    task('d', null, null, { status: 'pending', name: '=HYPERLINK("x")' }),
  ],
}

const hex = (length: number) => z.string().regex(new RegExp(`^[0-9a-f]{${length}}$`))
const nano = z.string().regex(/^\d{19}$/)
const attribute = z.strictObject({
  key: z.string(),
  value: z.union([
    z.strictObject({ stringValue: z.string() }),
    z.strictObject({ intValue: z.string().regex(/^\d+$/) }),
  ]),
})
const span = z.strictObject({
  traceId: hex(32),
  spanId: hex(16),
  parentSpanId: hex(16).optional(),
  name: z.string().min(1),
  kind: z.literal(1),
  startTimeUnixNano: nano,
  endTimeUnixNano: nano,
  attributes: z.array(attribute),
  links: z.array(z.strictObject({ traceId: hex(32), spanId: hex(16), attributes: z.array(attribute) })).optional(),
  status: z.strictObject({ code: z.union([z.literal(0), z.literal(1), z.literal(2)]), message: z.string().optional() }),
})
const otlp = z.strictObject({
  resourceSpans: z.array(
    z.strictObject({
      resource: z.strictObject({ attributes: z.array(attribute) }),
      scopeSpans: z.array(z.strictObject({ scope: z.strictObject({ name: z.string() }), spans: z.array(span) })),
    }),
  ),
})

test('OTLP/JSON: one trace, a span for the flow and one below it for every task that began', () => {
  const { contentType, text } = exportTrace(flow, 'otlp')
  assert.match(contentType, /^application\/json/)
  const spans = otlp.parse(JSON.parse(text)).resourceSpans[0]?.scopeSpans[0]?.spans ?? []
  assert.deepEqual(
    spans.map(({ name, status }) => [name, status.code]),
    [
      ['flow', 2],
      ['a', 1],
      ['b', 2],
      ['c', 0],
    ],
  )
  const [root, a, , c] = spans
  assert.equal(new Set(spans.map(({ spanId }) => spanId)).size, spans.length)
  assert.ok(
    spans.slice(1).every(({ parentSpanId, traceId }) => parentSpanId === root?.spanId && traceId === root?.traceId),
  )
  assert.deepEqual([a?.startTimeUnixNano, a?.endTimeUnixNano], ['1700000000000000000', '1700000000040000000'])
  assert.deepEqual(
    c?.links?.map(({ spanId }) => spanId),
    [a?.spanId],
    'only what has a span can be linked',
  )
  assert.equal(c?.endTimeUnixNano, '1700000000100000000', 'what goes on is shown up to now')
})

const chromeEvent = z.looseObject({
  name: z.string(),
  pid: z.int(),
  tid: z.int(),
  ts: z.number(),
  args: z.looseObject({}),
})
const chrome = z.strictObject({
  displayTimeUnit: z.enum(['ms', 'ns']),
  traceEvents: z.array(
    z.discriminatedUnion('ph', [
      chromeEvent.extend({ ph: z.literal('X'), dur: z.number().min(0) }),
      chromeEvent.extend({ ph: z.literal('M') }),
    ]),
  ),
})

test('Chrome trace events: complete events in microseconds, and none that overlap on one lane', () => {
  const { traceEvents } = chrome.parse(JSON.parse(exportTrace(flow, 'chrome').text))
  const complete = traceEvents.filter((event) => event.ph === 'X')
  assert.deepEqual(
    complete.map(({ name, tid, ts, dur }) => [name, tid, ts - 1_700_000_000_000_000, dur]),
    [
      ['flow', 0, 0, 100_000],
      ['a', 1, 0, 40_000],
      ['b', 2, 10_000, 50_000],
      ['c', 1, 40_000, 60_000],
    ],
  )
})

/** RFC 4180, as strict as a test needs it. */
function parseCsv(text: string): string[][] {
  const rows: string[][] = []
  let row: string[] = []
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/gy)) {
    row.push(quoted === undefined ? (plain ?? '') : quoted.replaceAll('""', '"'))
    if (end === ',') continue
    rows.push(row)
    row = []
  }
  return rows
}

test('CSV: a row for every task, quotes and line breaks kept, and no formula', () => {
  const { contentType, text } = exportTrace(flow, 'csv')
  assert.match(contentType, /^text\/csv/)
  const [head = [], ...rows] = parseCsv(text)
  assert.ok([head, ...rows].every((row) => row.length === head.length))
  const cells = rows.map((row) => Object.fromEntries(head.map((name, index) => [name, row[index]])))
  assert.equal(cells.length, 4)
  assert.equal(cells[0]?.duration, '40')
  assert.equal(cells[1]?.error, 'a "quoted", long\nerror')
  assert.equal(cells[2]?.depends_on, 'a;d')
  assert.deepEqual([cells[3]?.name, cells[3]?.start_at], [`'=HYPERLINK("x")`, ''])
})
