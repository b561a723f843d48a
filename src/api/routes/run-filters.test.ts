// The filters of the list of runs over HTTP.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import type { Page } from '../../kernel/fields.ts'
import { newId } from '../../kernel/id.ts'
import type { Run } from '../../kernel/run.ts'

const kit = await createTestApp()
const project = await kit.createProject()
const other = await kit.createProject()
const writer = await kit.createAgent(project.id, { name: 'Letter writer' })
const clerk = await kit.createAgent(project.id, { name: 'Clerk' })
const stranger = await kit.createAgent(other.id, { name: 'Letter stranger' })

type Refusal = { error: { message: string } }

interface Given {
  input: unknown
  agentId?: string
  projectId?: string
  minutesAgo: number
  status?: string
  summary?: string
  parent?: string
  flowRun?: string
}

async function insert(given: Given): Promise<string> {
  const { input, agentId = clerk.id, projectId = project.id, minutesAgo, status = 'completed', summary } = given
  const id = newId()
  await kit.pool.query(
    `insert into agent_runs (id, project_id, agent_id, trigger, input, status, summary, parent_run_id, flow_run_id,
       created_at, completed_at, ready_at)
     values ($1, $2, $3, '{"type":"manual"}', $4, $5, $6, $7, $8, muster.now() - $9 * interval '1 minute',
       muster.now(), null)`,
    [
      id,
      projectId,
      agentId,
      JSON.stringify(input),
      status,
      summary ?? null,
      given.parent ?? null,
      given.flowRun ?? null,
      minutesAgo,
    ],
  )
  return id
}

const refund = await insert({ input: 'Refund  the customer', minutesAgo: 5 })
const owl = await insert({ input: { topic: 'owls' }, minutesAgo: 90, status: 'failed', summary: 'A refund was found.' })
const letter = await insert({ input: 'Write', agentId: writer.id, minutesAgo: 3_000, summary: '100% done' })
const child = await insert({ input: 'refund as well', minutesAgo: 4, parent: refund })
const leaf = await insert({ input: 'leaf', minutesAgo: 3, flowRun: newId() })
await insert({ input: 'Refund elsewhere', agentId: stranger.id, projectId: other.id, minutesAgo: 1 })

interface Answer extends Page<Run> {
  error?: { message: string }
}
const ask = (query: Record<string, string>) =>
  kit.call<Answer>(`GET /api/projects/${project.id}/runs?${new URLSearchParams(query)}`)
const found = async (query: Record<string, string>): Promise<string[]> => {
  const { status, body } = await ask(query)
  assert.equal(status, 200, body.error?.message)
  return body.items.map(({ id }) => id)
}
const minutesAgo = (count: number): string => new Date(Date.now() - count * 60_000).toISOString()

test('q finds runs by input, summary, the name of the agent and the id, newest first', async () => {
  assert.deepEqual(await found({ q: 'REFUND' }), [child, refund, owl])
  assert.deepEqual(await found({ q: 'refund the' }), [refund])
  assert.deepEqual(await found({ q: 'owls' }), [owl])
  assert.deepEqual(await found({ q: 'letter' }), [letter])
  assert.deepEqual(await found({ q: letter }), [letter])
  assert.deepEqual(await found({ q: '0% d' }), [letter])
  assert.deepEqual(await found({ q: '%' }), [letter])
  assert.deepEqual(await found({ q: 'nothing has this' }), [])
})

test('q goes with the other filters, and page by page', async () => {
  assert.deepEqual(await found({ q: 'refund', status: 'failed' }), [owl])
  assert.deepEqual(await found({ q: 'letter', status: 'failed' }), [])
  assert.deepEqual(await found({ q: 'refund', parent_run_id: refund }), [child])
  assert.deepEqual(await found({ q: 'refund', parent_run_id: 'none' }), [refund, owl])
  assert.deepEqual(await found({ q: 'letter', parent_run_id: 'none' }), [letter])
  assert.deepEqual(await found({ q: 'refund', agent_id: writer.id }), [])
  assert.deepEqual(await found({ q: 'refund', created_before: minutesAgo(60) }), [owl])
  const first = await ask({ q: 'refund', limit: '2' })
  assert.deepEqual(
    first.body.items.map(({ id }) => id),
    [child, refund],
  )
  assert.deepEqual(await found({ q: 'refund', limit: '2', cursor: first.body.next_cursor ?? '' }), [owl])
})

test('a period has a beginning, an end or both', async () => {
  assert.deepEqual(await found({ created_after: minutesAgo(60) }), [leaf, child, refund])
  assert.deepEqual(await found({ created_before: minutesAgo(60) }), [owl, letter])
  assert.deepEqual(await found({ created_after: minutesAgo(100), created_before: minutesAgo(60) }), [owl])
  assert.deepEqual(await found({ created_after: '2026-01-01T00:00:00+02:00', status: 'failed' }), [owl])
  assert.deepEqual(await found({ created_before: '0000-01-01T00:00:00Z' }), [])
  const [{ created_at: exact } = { created_at: '' }] = (await ask({ q: refund })).body.items
  assert.ok((await found({ created_after: exact })).includes(refund))
  assert.ok(!(await found({ created_before: exact })).includes(refund))
})

test('parent_run_id=none leaves out sub-runs and leaves', async () => {
  assert.deepEqual(await found({ parent_run_id: 'none' }), [refund, owl, letter])
  assert.deepEqual(await found({ parent_run_id: 'none', status: 'failed' }), [owl])
  assert.deepEqual(await found({ parent_run_id: 'none', id: leaf.slice(0, 23) }), [])
  assert.deepEqual(await found({ parent_run_id: 'none', id: refund }), [refund])
})

for (const [query, message] of [
  [{ q: ' ' }, /q must not be blank/],
  [{ q: 'x'.repeat(201) }, /q must have at most 200 characters/],
  [{ limit: '1e9' }, /limit must be a whole number from 1 to 200, in digits/],
  [{ limit: '201' }, /limit must be a whole number from 1 to 200, in digits/],
  [{ created_after: 'yesterday' }, /created_after must be an instant/],
  [{ created_before: '2026-02-31T00:00:00Z' }, /created_before must be an instant/],
  [{ parent_run_id: 'nobody' }, /parent_run_id must be the id of a run, or none/],
  [{ parent_run_id: 'none', agent_id: clerk.id }, /cannot be asked for with agent_id/],
  [{ parent_run_id: 'none', flow_run_id: newId() }, /cannot be asked for with flow_run_id/],
  [{ id: '01234567', q: 'x' }, /id or q, not both/],
  [{ since: 'yesterday' }, /since/],
] as const) {
  test(`${JSON.stringify(query).slice(0, 60)} is refused`, async () => {
    const { status, body } = await ask(query)
    assert.equal(status, 400)
    assert.match(body.error?.message ?? '', message)
  })
}

test('a search through texts that are packed well is answered, or refused with a sentence about it', async () => {
  const crowd = await kit.createProject()
  await kit.pool.query(
    `insert into agent_runs (id, project_id, agent_id, trigger, input, status, created_at, completed_at, ready_at)
     select gen_random_uuid(), $1, $2, '{"type":"manual"}', to_jsonb(repeat('a', 300000)), 'completed', muster.now(),
       muster.now(), null from generate_series(1, 1000)`,
    [crowd.id, newId()],
  )
  const { status, body } = await kit.call<Refusal>(`GET /api/projects/${crowd.id}/runs?q=${'a'.repeat(24)}b`)
  if (status === 503) assert.match(body.error.message, /^This search takes too long\. Narrow it/)
  else assert.equal(status, 200)
})
