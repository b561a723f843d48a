import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { after, before, beforeEach, test } from 'node:test'
import { promisify } from 'node:util'
import { createEgress } from '../egress/egress.ts'
import { silentLog } from '../kernel/log.ts'
import { createTracing } from './create-tracing.ts'
import { createRedactor } from './redact.ts'
import { noTracing, type Span, type TraceTarget, type Tracing, type TracingOptions, tracesUrl } from './tracing.ts'

interface OtlpSpan {
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  kind: number
  startTimeUnixNano: string
  endTimeUnixNano: string
  attributes: { key: string; value: Record<string, unknown> }[]
  events: { name: string; attributes: { key: string; value: Record<string, unknown> }[] }[]
  status: { code?: number; message?: string }
}
interface OtlpBody {
  resourceSpans: {
    resource: { attributes: { key: string; value: { stringValue?: string } }[] }
    scopeSpans: { scope: { name: string }; spans: OtlpSpan[] }[]
  }[]
}

const egress = createEgress({ allow: [] })
let server: Server
let endpoint = ''
let posts: { path: string; headers: Record<string, unknown>; body: string }[] = []
let answer: { status: number } | 'never' = { status: 200 }

before(async () => {
  server = createServer(async (request, response) => {
    posts.push({ path: request.url ?? '', headers: request.headers, body: await text(request) })
    if (answer !== 'never') response.writeHead(answer.status, { 'content-type': 'application/json' }).end('{}')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
beforeEach(() => {
  posts = []
  answer = { status: 200 }
})
after(async () => {
  server.closeAllConnections()
  server.close()
  await egress.close()
})

const target = (more: Partial<TraceTarget> = {}): TraceTarget => ({ url: tracesUrl(endpoint), format: 'json', ...more })

const open = (options: Partial<TracingOptions> = {}): Promise<Tracing> =>
  createTracing({
    targets: [target()],
    fetch: egress.fetch('trusted'),
    serviceName: 'muster',
    version: '1.2.3',
    log: silentLog,
    ...options,
  })

const received = (): OtlpSpan[] =>
  posts.flatMap((post) =>
    (JSON.parse(post.body) as OtlpBody).resourceSpans.flatMap((item) =>
      item.scopeSpans.flatMap((scope) => scope.spans),
    ),
  )

const attribute = (span: OtlpSpan | undefined, key: string): unknown => {
  const value = span?.attributes.find((item) => item.key === key)?.value
  return value === undefined ? undefined : Object.values(value)[0]
}

test('spans reach the collector as one valid OTLP post, nested as they were called', async () => {
  const tracing = await open({ targets: [target({ headers: { 'x-team': 'blue' } })] })
  const result = await tracing.span(
    'run',
    { 'run.id': 'r1', steps: 2, cost: 0.5, ok: true, tags: ['a', 'b'], none: null },
    async (run) => {
      await Promise.all([
        tracing.span('step 1', {}, async (step) => step.event('tool.called', { 'tool.name': 'search' })),
        tracing.span('step 2', {}, async () => tracing.span('model', {}, () => 1, { kind: 'client' })),
      ])
      run.set({ 'run.status': 'completed' })
      return 'done'
    },
  )
  await tracing.stop()
  assert.equal(result, 'done')
  assert.equal(posts.length, 1)
  assert.equal(posts[0]?.path, '/v1/traces')
  assert.equal(posts[0]?.headers['content-type'], 'application/json')
  assert.equal(posts[0]?.headers['x-team'], 'blue')
  const body = JSON.parse(posts[0]?.body ?? '') as OtlpBody
  const resource = Object.fromEntries(
    body.resourceSpans[0]?.resource.attributes.map((item) => [item.key, item.value.stringValue]) ?? [],
  )
  assert.deepEqual([resource['service.name'], resource['service.version']], ['muster', '1.2.3'])

  const spans = received()
  const byName = (name: string): OtlpSpan | undefined => spans.find((span) => span.name === name)
  const [run, first, second, model] = ['run', 'step 1', 'step 2', 'model'].map(byName)
  assert.equal(spans.length, 4)
  for (const span of spans) {
    assert.match(span.traceId, /^[0-9a-f]{32}$/)
    assert.match(span.spanId, /^[0-9a-f]{16}$/)
    assert.equal(span.traceId, run?.traceId)
    assert.ok(BigInt(span.endTimeUnixNano) >= BigInt(span.startTimeUnixNano))
  }
  assert.deepEqual(
    [first?.parentSpanId, second?.parentSpanId, model?.parentSpanId],
    [run?.spanId, run?.spanId, second?.spanId],
  )
  assert.equal(run?.parentSpanId, undefined)
  assert.deepEqual([run?.kind, model?.kind], [1, 3])
  assert.deepEqual(
    ['run.id', 'steps', 'cost', 'ok', 'run.status', 'none'].map((key) => attribute(run, key)),
    ['r1', 2, 0.5, true, 'completed', undefined],
  )
  assert.equal(first?.events[0]?.name, 'tool.called')
})

test('a span continues the trace it is given, from another process or an earlier life of the run', async () => {
  const tracing = await open()
  const parent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const own = await tracing.span('first', {}, (span) => span.traceparent, { parent })
  await tracing.span('second', {}, () => {}, { parent: own })
  await tracing.span('broken parent', {}, () => {}, { parent: 'garbage' })
  await tracing.stop()
  const [first, second, broken] = received()
  assert.deepEqual([first?.traceId, first?.parentSpanId], ['0af7651916cd43dd8448eb211c80319c', 'b7ad6b7169203331'])
  assert.deepEqual([second?.traceId, second?.parentSpanId], [first?.traceId, first?.spanId])
  assert.equal(broken?.parentSpanId, undefined)
  assert.equal(own, `00-${first?.traceId}-${first?.spanId}-01`)
})

const PLACE = { traceId: '0123456789abcdef0123456789abcdef', spanId: 'fedcba9876543210' }

test('work that is over is recorded at its place in a trace, with its own times', async () => {
  const tracing = await open()
  const startedAt = new Date('2026-01-02T03:04:05.678Z')
  const endedAt = new Date('2026-01-02T03:04:06.789Z')
  const past = { startedAt, endedAt, attributes: { 'muster.run_id': 'r', 'gen_ai.prompt': 'CANARY' } }
  tracing.record({ ...PLACE, ...past, name: 'run', parentId: null })
  tracing.record({
    ...PLACE,
    ...past,
    spanId: '1111111111111111',
    name: 'step',
    parentId: PLACE.spanId,
    failure: 'BAD',
  })
  await tracing.span('another', {}, () => {})
  await tracing.stop()
  const [run, step, another] = received()
  assert.deepEqual([run?.traceId, run?.spanId, run?.parentSpanId], [PLACE.traceId, PLACE.spanId, undefined])
  assert.deepEqual([step?.traceId, step?.spanId, step?.parentSpanId], [PLACE.traceId, '1111111111111111', PLACE.spanId])
  for (const span of [run, step]) {
    assert.equal(span?.startTimeUnixNano, `${startedAt.getTime()}000000`)
    assert.equal(span?.endTimeUnixNano, `${endedAt.getTime()}000000`)
  }
  assert.deepEqual([run?.status.code ?? 0, step?.status.code, attribute(step, 'error.type')], [0, 2, 'BAD'])
  assert.notEqual(another?.traceId, PLACE.traceId, 'other spans have ids of their own')
  assert.ok(!posts.some((post) => post.body.includes('CANARY')))
})

test('several targets get the same spans; a target that wants runs only gets no requests', async () => {
  const targets = [
    target({ url: `${endpoint}/all/v1/traces` }),
    target({ url: `${endpoint}/runs/v1/traces`, runsOnly: true }),
  ]
  const tracing = await open({ targets })
  await tracing.span('request', {}, () => {})
  const times = { startedAt: new Date(), endedAt: new Date() }
  tracing.record({ ...PLACE, ...times, name: 'run', parentId: null, attributes: { 'muster.run_id': 'r' } })
  await tracing.stop()
  const namesAt = (path: string): string[] =>
    posts
      .filter((post) => post.path === path)
      .flatMap((post) => (JSON.parse(post.body) as OtlpBody).resourceSpans)
      .flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans.map(({ name }) => name)))
  assert.deepEqual([namesAt('/all/v1/traces'), namesAt('/runs/v1/traces')], [['request', 'run'], ['run']])
})

test('a collector that is busy for a moment is tried again, and nothing is lost or logged', async () => {
  const warnings: string[] = []
  answer = { status: 503 }
  const tracing = await open({ log: { ...silentLog, warn: (_: object, message: string) => warnings.push(message) } })
  for (let index = 0; index < 512; index += 1) await tracing.span('x', {}, () => {})
  while (posts.length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
  answer = { status: 200 }
  await tracing.stop()
  assert.equal(posts.length, 2)
  assert.deepEqual(warnings, [])
})

test('a failure passes through unchanged and marks its span, and the span does not quote the failure', async () => {
  const tracing = await open()
  const failure = new TypeError('CANARY in a message')
  await assert.rejects(
    tracing.span('failing', {}, () => Promise.reject(failure)),
    (error) => error === failure,
  )
  await assert.rejects(
    tracing.span('failing at once', {}, () => {
      throw failure
    }),
    (error) => error === failure,
  )
  await tracing.stop()
  for (const span of received()) {
    assert.deepEqual([span.status.code, attribute(span, 'error.type')], [2, 'TypeError'])
  }
  assert.equal(received().length, 2)
  assert.ok(!posts.some((post) => post.body.includes('CANARY')))
})

const content = {
  'gen_ai.input.messages': 'CANARY',
  'gen_ai.output.messages': 'CANARY',
  'gen_ai.system_instructions': 'CANARY',
  'gen_ai.prompt': 'CANARY',
  'gen_ai.prompt.0.content': 'CANARY',
  'gen_ai.completion.0.content': 'CANARY',
  'gen_ai.tool.call.arguments': 'CANARY',
  'gen_ai.tool.call.result': 'CANARY',
  'gen_ai.tool.definitions': 'CANARY',
  'ai.prompt.messages': 'CANARY',
  'ai.response.text': 'CANARY',
  'ai.response.toolCalls': 'CANARY',
  'ai.toolCall.args': 'CANARY',
  'ai.toolCall.result': 'CANARY',
  'input.value': 'CANARY',
  'output.value': ['CANARY'],
  input: 'CANARY',
}
const figures = {
  'gen_ai.usage.input_tokens': 5,
  'gen_ai.request.model': 'm',
  'gen_ai.response.finish_reasons': ['stop'],
}

async function traceEverywhere(
  tracing: Tracing,
  attributes: Record<string, string | string[] | number>,
): Promise<string> {
  await tracing.span('span', attributes, (span: Span) => {
    span.set(attributes)
    span.event('event', attributes)
  })
  await tracing.stop()
  assert.equal(received().length, 1)
  return posts.map((post) => post.body).join('')
}

test('prompts and tool content are not recorded, figures are', async () => {
  const sent = await traceEverywhere(await open(), { ...content, ...figures })
  assert.ok(!sent.includes('CANARY'))
  for (const key of Object.keys(figures)) assert.notEqual(attribute(received()[0], key), undefined, key)
})

test('control: an attribute that is not content is recorded', async () => {
  const sent = await traceEverywhere(await open(), { 'muster.note': 'CANARY' })
  assert.equal(sent.match(/CANARY/g)?.length, 2)
})

test('secrets are masked: by shape, by name and when registered', async () => {
  const redactor = createRedactor()
  redactor.registerSecret('known CANARY value')
  const tracing = await open({ redactor })
  await tracing.span('a known CANARY value as name', {}, (span) => span.event('known CANARY value'))
  await assert.rejects(tracing.span('x', {}, () => Promise.reject(new Error('known CANARY value'))))
  await tracing.span(
    'span',
    {
      'http.url': 'https://u:CANARY@example.com/?token=CANARY',
      'http.request.header.authorization': ['CANARY'],
      note: 'Bearer CANARY',
      api_key: 'CANARY',
      'muster.note': 'the known CANARY value',
    },
    () => {},
  )
  await tracing.stop()
  assert.equal(received().length, 3)
  assert.ok(!posts.some((post) => post.body.includes('CANARY')), posts[0]?.body)
})

test('a collector that fails is logged once, and no caller notices', async () => {
  const warnings: string[] = []
  const log = { ...silentLog, warn: (_: object, message: string) => warnings.push(message) }
  answer = { status: 400 }
  const failing = await open({ log })
  for (let batch = 0; batch < 3; batch += 1) {
    for (let index = 0; index < 512; index += 1) assert.equal(await failing.span('x', {}, () => index), index)
  }
  await failing.stop()
  assert.ok(posts.length >= 3)
  assert.equal(warnings.length, 1)
})

test('the return of the collector is logged too, and later spans arrive', async () => {
  const warned = Promise.withResolvers<void>()
  const infos: string[] = []
  const log = { ...silentLog, warn: () => warned.resolve(), info: (_: object, message: string) => infos.push(message) }
  answer = { status: 400 }
  const tracing = await open({ log })
  // A batch of 512 spans is sent at once.
  for (let index = 0; index < 512; index += 1) await tracing.span('lost', {}, () => {})
  await warned.promise
  answer = { status: 200 }
  await tracing.span('arrived', {}, () => {})
  await tracing.stop()
  assert.equal(infos.length, 1)
  assert.equal(received().at(-1)?.name, 'arrived')
})

test('a collector that never answers, or does not exist, does not delay the stop', async () => {
  answer = 'never'
  for (const url of [tracesUrl(endpoint), 'http://127.0.0.1:1/v1/traces']) {
    const tracing = await open({ targets: [target({ url })] })
    await tracing.span('x', {}, () => {})
    const startedAt = performance.now()
    await tracing.stop(100)
    assert.ok(performance.now() - startedAt < 5_000)
  }
})

test('without an endpoint the traced work still runs', async () => {
  assert.equal(await open({ targets: [] }), noTracing)
  noTracing.record({ ...PLACE, name: 'x', parentId: null, startedAt: new Date(), endedAt: new Date(), attributes: {} })
  assert.equal(await noTracing.span('x', {}, (span) => span.traceparent), null)
  await assert.rejects(
    noTracing.span('x', {}, () => {
      throw new Error('passed on')
    }),
    /passed on/,
  )
  await noTracing.stop()
})

test('without an endpoint nothing of OpenTelemetry is loaded; with an endpoint it is', async () => {
  // Every module of either kind passes these hooks, so a module that they did not see was not loaded.
  const program = `
    import { registerHooks } from 'node:module'
    const loaded = []
    registerHooks({ load: (url, context, next) => { loaded.push(url); return next(url, context) } })
    const { createTracing } = await import('${new URL('./create-tracing.ts', import.meta.url)}')
    const log = { debug() {}, info() {}, warn() {}, error() {} }
    const targets = process.argv[1] ? [{ url: process.argv[1], format: 'json' }] : []
    const tracing = await createTracing({ targets, fetch: async () => new Response(), serviceName: 'x', version: '1', log })
    await tracing.span('x', {}, () => {})
    await tracing.stop(10)
    process.stdout.write(JSON.stringify(loaded))
    process.exit(0)`
  const loadedWith = async (argument: string): Promise<string[]> => {
    const args = ['--input-type=module', '--eval', program, argument]
    return JSON.parse((await promisify(execFile)(process.execPath, args)).stdout)
  }
  const [without, withEndpoint] = [await loadedWith(''), await loadedWith(endpoint)]
  assert.ok(without.some((url) => url.endsWith('/observe/create-tracing.ts')))
  assert.deepEqual(
    without.filter((url) => /opentelemetry|otlp/.test(url)),
    [],
  )
  assert.ok(withEndpoint.some((url) => url.includes('@opentelemetry/sdk-trace')))
})
