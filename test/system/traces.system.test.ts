// Traces of a real server, with a collector and a stand-in for LangSmith on this machine. The stand-in answers as
// LangSmith's documentation and SDK describe; nothing was sent to LangSmith itself.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { AgentRunAnswer } from '../../src/kernel/supervisor.ts'
import { startCollector } from '../kit/otlp-collector.ts'
import { startMuster } from '../kit/process.ts'
import { until } from '../kit/until.ts'

const KEY = 'lsv2_pt_0123456789abcdef_0123456789'
const TENANT = '0e6f0d1c-3f0f-4d6c-9d0a-111111111111'
const PROJECT = '5c3a9c52-5d3b-4f5e-8a55-222222222222'

const digits = (id: string): string => id.replaceAll('-', '')

test('a supervisor’s run is one trace in a viewer, and its address is in every answer', async (t) => {
  const collector = await startCollector({ after })
  const muster = await startMuster(t, {
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_HEADERS: 'x-team=blue%20team',
      MUSTER_TRACE_URL: 'http://viewer.example/trace/{trace_id}?span={span_id}',
    },
  })
  const { body } = await ask(muster)
  const { run_id: runId, trace_url: url } = body.metadata
  assert.equal(url, `http://viewer.example/trace/${digits(runId)}?span=${digits(runId).slice(16)}`)
  const project = body.project
  const run = await muster.call<{ trace_url: string }>(`GET /api/projects/${project}/runs/${runId}`)
  assert.equal(run.body.trace_url, url)
  await muster.stop()
  const spans = collector.spans().filter((span) => span.traceId === digits(runId))
  const names = spans.map(({ name }) => name)
  for (const name of [
    'invoke_agent supervisor',
    'invoke_agent research_agent',
    'node supervisor',
    'node finalizer',
    'chat offline',
  ]) {
    assert.ok(names.includes(name), `${name} is missing in ${names}`)
  }
  // Requests are traced too, as traces of their own.
  assert.ok(collector.spans().some(({ name }) => name === 'POST /v1/agent/run'))
  for (const post of collector.posts) {
    assert.deepEqual(
      [post.path, post.headers['x-team'], post.headers['content-type']],
      ['/v1/traces', 'blue team', 'application/json'],
    )
  }
})

test('with LANGSMITH_API_KEY runs are sent to its OTLP endpoint with its headers, and answers link to them', async (t) => {
  const langsmith = await startCollector({ after }, (request, response) => {
    const isProject = request.url?.startsWith('/sessions?')
    response.writeHead(isProject ? 200 : 404, { 'content-type': 'application/json' })
    response.end(isProject ? JSON.stringify([{ id: PROJECT, tenant_id: TENANT, name: 'my project' }]) : '{}')
  })
  const muster = await startMuster(t, {
    env: {
      LANGSMITH_API_KEY: KEY,
      LANGSMITH_ENDPOINT: langsmith.url,
      LANGSMITH_PROJECT: 'my project',
      // These are the settings of LangChain's own tracing, which would send all texts.
      LANGSMITH_TRACING: 'true',
      LANGCHAIN_TRACING_V2: 'true',
    },
  })
  const { body } = await ask(muster)
  const { run_id: runId } = body.metadata
  const read = async () =>
    (await muster.call<AgentRunAnswer>(`GET /v1/agent/runs/${runId}`, { headers: { 'x-project-id': body.project } }))
      .body
  // The first answers come before LangSmith has given the project's address.
  await until(async () => (await read()).metadata.trace_url !== undefined, 'the address is known')
  const langsmithId = `00000000-0000-0000-${runId.slice(19)}`
  assert.equal(
    (await read()).metadata.trace_url,
    `${langsmith.url}/o/${TENANT}/projects/p/${PROJECT}/r/${langsmithId}?poll=true`,
  )
  await muster.stop()
  for (const post of langsmith.posts) {
    const { 'x-api-key': key, 'langsmith-project': project, 'content-type': type } = post.headers
    assert.deepEqual([post.path, key, project, type], ['/otel/v1/traces', KEY, 'my project', 'application/x-protobuf'])
  }
  const spans = langsmith.spans()
  assert.ok(spans.length > 5, `${spans.length} spans`)
  for (const { name, attributes } of spans) {
    assert.equal(typeof attributes['muster.run_id'], 'string', `${name} is no part of a run`)
  }
  const root = spans.find((span) => span.name === 'invoke_agent supervisor' && span.traceId === digits(runId))
  assert.deepEqual(
    [root?.spanId, root?.parentId, root?.attributes['langsmith.span.kind']],
    [digits(runId).slice(16), '', 'chain'],
  )
  const call = spans.find((span) => span.name === 'chat offline')
  assert.deepEqual(
    [call?.attributes['langsmith.span.kind'], call?.attributes['gen_ai.request.model']],
    ['llm', 'offline'],
  )
  // LangChain's own tracer would have posted runs.
  assert.deepEqual([...new Set(langsmith.others.map(({ path }) => path))], ['/sessions?name=my%20project&limit=1'])
  assert.equal(muster.stderr().includes(KEY), false)
})

/** A task of the supervisor, without any key, and the project it was given in. */
async function ask(muster: Awaited<ReturnType<typeof startMuster>>) {
  const project = (await muster.call<{ id: string }>('POST /api/projects', { body: { name: 'Traced' } })).body.id
  const answer = await muster.call<AgentRunAnswer>('POST /v1/agent/run', {
    headers: { 'x-project-id': project },
    body: { input: { task: 'Compare green tea with black coffee.' } },
  })
  assert.equal(answer.body.result.status, 'DONE', answer.text)
  return { body: { ...answer.body, project } }
}
