// The spans of runs as a collector on this machine receives them while runs are executed.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { atEnd } from '../../test/kit/at-end.ts'
import { type CollectedSpan, type Collector, startCollector } from '../../test/kit/otlp-collector.ts'
import { recordLog } from '../../test/kit/record-log.ts'
import { createScriptedModel } from '../../test/kit/scripted-model.ts'
import { createSupervisor, delegate, finish, type Replies } from '../../test/kit/supervisor.ts'
import type { Db } from '../db/pool.ts'
import { createEgress } from '../egress/egress.ts'
import type { StoredEvent } from '../journal/entries.ts'
import { newId } from '../kernel/id.ts'
import { silentLog } from '../kernel/log.ts'
import type { Model } from '../kernel/model-call.ts'
import { createTracing } from '../observe/create-tracing.ts'
import { spanIdOf, traceIdOf } from '../observe/trace-ids.ts'
import { noTracing, type Tracing, tracesUrl } from '../observe/tracing.ts'
import { type RunTraces, traceRuns } from './trace-runs.ts'

const egress = createEgress({ allow: [] })
atEnd(() => egress.close())

/** With `isLate` all spans are sent after the run is over, as by a busy process. */
async function createTraced(
  replies: Replies,
  { models, isLate = false }: { models?: Map<string, Model>; isLate?: boolean } = {},
) {
  const collector: Collector = await startCollector({ after })
  const tracing = await createTracing({
    targets: [{ url: tracesUrl(collector.url), format: 'json' }],
    fetch: egress.fetch('trusted'),
    serviceName: 'muster',
    version: '0',
    log: silentLog,
  })
  let traces: RunTraces | null = null
  const kept: StoredEvent[] = []
  const kit = await createSupervisor(replies, {
    firstBackoffMs: 1,
    models,
    onEvents: (events) => (traces && !isLate ? traces.onEvents(events) : kept.push(...events)),
  })
  traces = traceRuns({ tracing, db: kit.pool, log: silentLog })
  const told = async (): Promise<CollectedSpan[]> => {
    await kit.services.journal.drain()
    traces?.onEvents(kept)
    await traces?.drain()
    await tracing.stop()
    return collector.spans()
  }
  return { ...kit, told }
}

const named = (spans: readonly CollectedSpan[], name: string): CollectedSpan[] =>
  spans.filter((span) => span.name === name)

const todo = { id: 't1', description: 'Look it up', status: 'IN_PROGRESS', owner_agent: 'research_agent' }

test('a supervisor’s run is one trace: its nodes, its specialists and every model call, with the ids of the runs', async () => {
  const kit = await createTraced({
    supervisor: [delegate('research_agent', [todo], 'CANARY instructions'), finish([{ ...todo, status: 'DONE' }])],
    work: { research_agent: 'CANARY work' },
    finalizer: 'CANARY answer',
  })
  const { body } = await kit.run('CANARY task')
  const runId = body.metadata.run_id
  const childId = body.result.supervisor_state.history[0]?.step_id ?? ''
  const spans = await kit.told()
  for (const span of spans) assert.equal(span.traceId, traceIdOf(runId), span.name)

  const [root] = named(spans, 'invoke_agent supervisor')
  assert.deepEqual([root?.spanId, root?.parentId], [spanIdOf(runId), ''])
  assert.deepEqual(
    ['muster.run_id', 'muster.project_id', 'muster.system_variant', 'muster.status'].map(
      (key) => root?.attributes[key],
    ),
    [runId, kit.project.id, 'blue', 'completed'],
  )
  const [specialist] = named(spans, 'invoke_agent research_agent')
  assert.deepEqual([specialist?.spanId, specialist?.parentId], [spanIdOf(childId), root?.spanId])
  assert.deepEqual(
    ['muster.run_id', 'muster.parent_run_id', 'muster.node'].map((key) => specialist?.attributes[key]),
    [childId, runId, 'research_agent'],
  )
  const nodes = spans.filter((span) => span.name.startsWith('node '))
  assert.deepEqual(
    nodes.map(({ name, parentId }) => [name, parentId]),
    ['supervisor', 'supervisor', 'finalizer'].map((name) => [`node ${name}`, root?.spanId]),
  )
  const calls = spans.filter((span) => span.name.startsWith('chat '))
  const parents = new Set([...nodes.map(({ spanId }) => spanId), specialist?.spanId])
  assert.deepEqual(calls.map(({ attributes }) => attributes['gen_ai.request.model']).sort(), [
    'finalizer',
    'research_agent',
    'research_agent',
    'supervisor',
    'supervisor',
  ])
  for (const call of calls) {
    assert.ok(parents.has(call.parentId), call.name)
    assert.equal(call.attributes['gen_ai.provider.name'], 'test')
    assert.equal(typeof call.attributes['gen_ai.usage.output_tokens'], 'number')
  }
  assert.equal(spans.length, 2 + nodes.length + calls.length)
  assert.equal(new Set(spans.map(({ spanId }) => spanId)).size, spans.length, 'every span has an id of its own')
  for (const span of spans) {
    assert.ok(span.endMs >= span.startMs, span.name)
    assert.ok(span.startMs >= (root?.startMs ?? 0) - 1_000 && span.endMs <= (root?.endMs ?? 0) + 1_000, span.name)
  }
  assert.ok(!JSON.stringify(spans).includes('CANARY'), 'a trace contains no words of people or models')
})

for (const isLate of [false, true]) {
  const when = isLate ? 'also if all spans are sent late' : 'if spans are sent at once'
  test(`the span of an escalated run ends with its question, and the answer begins another span, ${when}`, () =>
    tellEscalated(isLate))
}

async function tellEscalated(isLate: boolean): Promise<void> {
  const kit = await createTraced({ supervisor: [{ plan: [], action: 'escalate' }, finish()] }, { isLate })
  const { body } = await kit.run('Ask.')
  const runId = body.metadata.run_id
  await kit.run('Yes.', { options: { run_id: runId } })
  const spans = await kit.told()
  const [root, ...moreRoots] = named(spans, 'invoke_agent supervisor')
  const [continued, ...more] = named(spans, 'continue supervisor')
  assert.deepEqual([moreRoots.length, more.length], [0, 0])
  assert.deepEqual([root?.attributes['muster.status'], root?.attributes['muster.pause_reason']], ['paused', 'human'])
  assert.deepEqual([continued?.parentId, continued?.attributes['muster.status']], [root?.spanId, 'completed'])
  assert.ok((continued?.startMs ?? 0) >= (root?.endMs ?? 0))
  assert.equal(named(spans, 'node hitl_escalation').length, 1)
}

test('the spans of an unavailable run and of a failed run have the error', async () => {
  let isAway = true
  const kit = await createTraced({
    finalizer: () =>
      isAway ? { fail: { message: 'Down.', isRetryable: true } } : { fail: { message: 'No.', isRetryable: false } },
  })
  const { body } = await kit.run('Wait.')
  isAway = false
  await kit.run('Go on.', { options: { run_id: String(body.error?.details.run_id) } })
  const spans = await kit.told()
  const [root] = named(spans, 'invoke_agent supervisor')
  assert.deepEqual([root?.attributes['muster.pause_reason'], root?.isError], ['unavailable', false])
  const [continued] = named(spans, 'continue supervisor')
  assert.deepEqual([continued?.isError, continued?.attributes['error.type']], [true, 'MODEL_ERROR'])
})

test('the run of an agent has its model calls and its tools below it; a wait for a person is no end', async () => {
  const script = [{ calls: [{ name: 'ask_human', args: { question: 'Well?' } }] }, { text: 'Good.' }]
  const kit = await createTraced({}, { models: new Map([['asker', createScriptedModel(script)]]) })
  const agent = await kit.createAgent(kit.project.id, {
    name: 'Asker',
    tools: ['ask_human'],
    model: { provider: 'test', name: 'asker' },
  })
  const run = await kit.call<{ id: string }>(`POST ${kit.base}/agents/${agent.id}/trigger`, { body: { input: 'Ask.' } })
  const { items } = await kit.get<{ items: { id: string }[] }>('/tasks?kind=escalation')
  await kit.call(`PATCH ${kit.base}/tasks/${items[0]?.id}`, { body: { status: 'completed', result: 'Yes.' } })
  while ((await kit.get<{ status: string }>(`/runs/${run.body.id}`)).status !== 'completed') {
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  const spans = await kit.told()
  const roots = named(spans, 'invoke_agent Asker')
  assert.equal(roots.length, 1)
  assert.equal(roots[0]?.attributes['muster.status'], 'completed')
  for (const name of ['chat asker', 'execute_tool ask_human']) {
    assert.ok(named(spans, name).length > 0, name)
    for (const span of named(spans, name)) assert.equal(span.parentId, spanIdOf(run.body.id))
  }
})

test('a run that is cancelled while it waits has exactly one span', async () => {
  const script = [{ calls: [{ name: 'ask_human', args: { question: 'Well?' } }] }]
  const kit = await createTraced(
    { supervisor: [{ plan: [], action: 'escalate' }] },
    { models: new Map([['asker', createScriptedModel(script)]]) },
  )
  const agent = await kit.createAgent(kit.project.id, {
    name: 'Asker',
    tools: ['ask_human'],
    model: { provider: 'test', name: 'asker' },
  })
  const asking = await kit.call<{ id: string }>(`POST ${kit.base}/agents/${agent.id}/trigger`, {
    body: { input: 'Ask.' },
  })
  const { body } = await kit.run('Ask.')
  const ids = [asking.body.id, body.metadata.run_id]
  for (const id of ids) {
    const cancelled = await kit.call(`POST ${kit.base}/runs/${id}/cancel`)
    assert.equal(cancelled.status, 200, cancelled.text)
  }
  const spans = await kit.told()
  assert.deepEqual(
    ids.map((id) =>
      spans.filter((span) => span.spanId === spanIdOf(id)).map((span) => span.attributes['muster.status']),
    ),
    // The span of a supervisor's run ended with its question.
    [['cancelled'], ['paused']],
  )
})

test('a warning has the number of events that could not be traced', async () => {
  const { log, lines } = recordLog()
  const tracing: Tracing = { ...noTracing }
  const db: Db = { query: () => Promise.reject(new Error('no connection')) }
  const traces = traceRuns({ tracing, db, log })
  const event = { runId: newId(), kind: 'run.completed', data: '{}', at: new Date() }
  traces.onEvents([1, 2, 3].map((seq) => ({ ...event, seq })))
  await traces.drain()
  assert.deepEqual(
    lines.map(({ level, fields }) => [level, fields.events]),
    [['warn', 3]],
  )
})
