import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { z } from 'zod'
import { type ExportedFlow, exportTrace } from './export-trace.ts'
import { type FlowTask, leafStatuses } from './trace.ts'

const at = (ms: number): string => new Date(1_700_000_000_000 + ms).toISOString()
const task = (id: string, from: number | null, to: number | null, more: Partial<FlowTask> = {}): FlowTask => ({
  id,
  name: id,
  kind: 'function',
  parent_id: 'root',
  depends_on: [],
  worker: null,
  status: 'completed',
  attempts: 1,
  usage: null,
  run_id: null,
  error: null,
  start_at: from === null ? null : at(from),
  end_at: to === null ? null : at(to),
  ...more,
})
const flow: ExportedFlow = {
  id: '0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b',
  name: 'flow',
  status: 'failed',
  error: 'broken',
  startedAt: new Date(1_700_000_000_000),
  until: new Date(1_700_000_000_100),
  tasks: [
    task('a', 0, 40),
    task('b', 10, 60, { status: 'failed', error: 'a "quoted", long\nerror' }),
    task('c', 40, null, { status: 'running', depends_on: ['a', 'd'] }),
    task('d', null, null, { status: 'pending', name: '=HYPERLINK("x")' }),
  ],
}

// The JSON mapping of OTLP: bytes of ids are hexadecimal and not all zero, 64-bit integers are decimal texts, enums are
// numbers, names are in lower camel case, and an attribute has one value of one kind.
const hex = (length: number) => z.string().regex(new RegExp(`^(?!0+$)[0-9a-f]{${length}}$`))
const nano = z.string().regex(/^[1-9]\d{18}$/)
const attribute = z.strictObject({
  key: z.string().regex(/^[a-z_]+(\.[a-z_]+)*$/),
  value: z.union([
    z.strictObject({ stringValue: z.string() }),
    z.strictObject({ intValue: z.string().regex(/^(0|[1-9]\d*)$/) }),
  ]),
})
const attributes = z.array(attribute).refine((all) => new Set(all.map(({ key }) => key)).size === all.length)
const span = z.strictObject({
  traceId: hex(32),
  spanId: hex(16),
  parentSpanId: hex(16).optional(),
  name: z.string().min(1),
  kind: z.literal(1),
  startTimeUnixNano: nano,
  endTimeUnixNano: nano,
  attributes,
  links: z.array(z.strictObject({ traceId: hex(32), spanId: hex(16), attributes })).optional(),
  status: z.strictObject({ code: z.union([z.literal(0), z.literal(1), z.literal(2)]), message: z.string().optional() }),
})
const otlp = z.strictObject({
  resourceSpans: z.array(
    z.strictObject({
      resource: z.strictObject({ attributes }),
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
    'only a task with a span can be linked',
  )
  assert.equal(c?.endTimeUnixNano, '1700000000100000000', 'a task under way is shown up to now')
})

// The Trace Event Format, as the JSON Object Format: the fields of each phase, and no others. Times are microseconds.
const micros = z.int().min(0)
const shared = { name: z.string(), cat: z.string().min(1), pid: z.int(), tid: z.int().min(0), ts: micros }
const chrome = z.strictObject({
  displayTimeUnit: z.enum(['ms', 'ns']),
  traceEvents: z.array(
    z.discriminatedUnion('ph', [
      z.strictObject({ ...shared, ph: z.literal('X'), dur: micros, args: z.record(z.string(), z.unknown()) }),
      z.strictObject({
        ...shared,
        ph: z.literal('M'),
        name: z.enum(['process_name', 'thread_name']),
        args: z.strictObject({ name: z.string().min(1) }),
      }),
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

/** Reads RFC 4180 strictly: each record ends with CRLF, and cells with quotes, commas or line breaks are quoted. */
function parseCsv(text: string): string[][] {
  const rows: string[][] = []
  let row: string[] = []
  let read = 0
  for (const [all, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/gy)) {
    read += all.length
    row.push(quoted === undefined ? (plain ?? '') : quoted.replaceAll('""', '"'))
    if (end === ',') continue
    rows.push(row)
    row = []
  }
  assert.equal(read, text.length, `this is no CSV: ${text.slice(read, read + 100)}`)
  assert.deepEqual(row, [], 'the last record has no end')
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

test('every format leads from a task to its run, with the tokens that the task used', () => {
  const run_id = '0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5c'
  const usage = { input_tokens: 7, output_tokens: 3, total_tokens: 10, estimated: false, cost_usd: 0.5 }
  const one = { ...flow, tasks: [task('a', 0, 40, { kind: 'agent', run_id, usage })] }
  const [, span] = otlp.parse(JSON.parse(exportTrace(one, 'otlp').text)).resourceSpans[0]?.scopeSpans[0]?.spans ?? []
  assert.deepEqual(span?.attributes.slice(-3), [
    { key: 'muster.run.id', value: { stringValue: run_id } },
    { key: 'gen_ai.usage.input_tokens', value: { intValue: '7' } },
    { key: 'gen_ai.usage.output_tokens', value: { intValue: '3' } },
  ])
  const event = chrome.parse(JSON.parse(exportTrace(one, 'chrome').text)).traceEvents.at(-1)
  assert.deepEqual(event?.ph === 'X' && [event.args.run_id, event.args.usage], [run_id, usage])
  const [head = [], row = []] = parseCsv(exportTrace(one, 'csv').text)
  const cells = Object.fromEntries(head.map((name, index) => [name, row[index]]))
  assert.deepEqual([cells.run_id, cells.input_tokens, cells.output_tokens, cells.cost_usd], [run_id, '7', '3', '0.5'])
})

const kind = fc.constantFrom<FlowTask['kind']>('agent', 'function')
const text = fc.oneof(
  fc.string({ unit: 'binary', minLength: 1 }),
  fc.constantFrom('=1+1', '-x', '@a', '+b', '\ttab', '\rreturn', 'a,b', '"', 'two\r\nlines', "'", ' ', '__proto__'),
)
const anyTask = fc.record({
  id: text,
  name: text,
  kind,
  worker: fc.option(text),
  parent: fc.option(text),
  error: fc.option(text),
  from: fc.option(fc.nat(200), { freq: 8 }),
  took: fc.option(fc.nat(100), { freq: 8 }),
  attempts: fc.nat(5),
  status: fc.constantFrom(...leafStatuses),
  waitsFor: fc.array(fc.nat(19), { maxLength: 3 }),
  tokens: fc.option(fc.nat()),
})
const anyFlow = fc
  .record({
    tasks: fc.uniqueArray(anyTask, { selector: ({ id }) => id, maxLength: 20 }),
    status: fc.constantFrom('running', 'completed', 'partial', 'failed', 'cancelled', 'timed_out'),
    name: text,
    error: fc.option(text),
    id: fc.uuid(),
  })
  .map(({ tasks, ...given }): ExportedFlow => {
    const idAt = (place: number): string => tasks[place % tasks.length]?.id ?? ''
    const usage = (tokens: number) => ({
      input_tokens: tokens,
      output_tokens: tokens,
      total_tokens: 2 * tokens,
      estimated: false,
      cost_usd: null,
    })
    return {
      ...given,
      startedAt: flow.startedAt,
      until: new Date(1_700_000_000_300),
      tasks: tasks.map(({ id, from, took, parent, waitsFor, tokens, ...rest }) =>
        task(id, from, from === null || took === null ? null : from + took, {
          ...rest,
          parent_id: parent,
          depends_on: waitsFor.map(idAt),
          usage: tokens === null ? null : usage(tokens),
        }),
      ),
    }
  })

/** True if two events of a lane overlap. The format allows an event within another, but our lanes do not nest. */
function overlapsOnLane(events: readonly { tid: number; ts: number; dur: number }[]): boolean {
  const byLane = Map.groupBy(events, ({ tid }) => tid)
  return [...byLane.values()].some((lane) => {
    const inTurn = lane.toSorted((a, b) => a.ts - b.ts || a.dur - b.dur)
    return inTurn.some(({ ts, dur }, index) => {
      const next = inTurn[index + 1]
      return next !== undefined && next.ts < ts + dur
    })
  })
}

test('the exports of any flow keep to their formats and tell all of it', () => {
  const property = fc.property(anyFlow, (given) => {
    const begun = given.tasks.filter(({ start_at }) => start_at !== null)

    const [head = [], ...rows] = parseCsv(exportTrace(given, 'csv').text)
    assert.equal(rows.length, given.tasks.length)
    for (const row of rows) assert.equal(row.length, head.length)
    const plain = (cell: string | null): string => (cell === null ? '' : /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell)
    for (const name of ['id', 'name', 'worker', 'error'] as const) {
      const column = rows.map((row) => row[head.indexOf(name)])
      assert.deepEqual(
        column,
        given.tasks.map((each) => plain(each[name])),
      )
    }

    const { traceEvents } = chrome.parse(JSON.parse(exportTrace(given, 'chrome').text))
    const complete = traceEvents.filter((event) => event.ph === 'X')
    assert.equal(complete.length, 1 + begun.length)
    assert.ok(!overlapsOnLane(complete))
    const lanes = new Set(
      traceEvents.flatMap(({ ph, name, tid }) => (ph === 'M' && name === 'thread_name' ? [tid] : [])),
    )
    assert.deepEqual(lanes, new Set(complete.map(({ tid }) => tid)), 'each lane has a name, and each name a lane')

    const spans = otlp.parse(JSON.parse(exportTrace(given, 'otlp').text)).resourceSpans[0]?.scopeSpans[0]?.spans ?? []
    assert.equal(spans.length, 1 + begun.length)
    const ids = new Set(spans.map(({ spanId }) => spanId))
    assert.equal(ids.size, spans.length)
    assert.deepEqual(spans.filter(({ parentSpanId }) => parentSpanId === undefined).length, 1)
    for (const { traceId, spanId, parentSpanId, links = [], startTimeUnixNano, endTimeUnixNano } of spans) {
      assert.equal(traceId, spans[0]?.traceId)
      assert.ok(BigInt(startTimeUnixNano) <= BigInt(endTimeUnixNano))
      assert.ok(parentSpanId === undefined || (ids.has(parentSpanId) && parentSpanId !== spanId))
      assert.ok(links.every((link) => ids.has(link.spanId) && link.traceId === traceId))
    }
  })
  fc.assert(property, { numRuns: 200 })
})
