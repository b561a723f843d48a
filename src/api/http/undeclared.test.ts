// Every route of the API refuses parameters it does not declare; pages, probes and hooks do not.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { smallEval } from '../../../test/kit/eval-roles.ts'
import { createGraph } from '../../../test/kit/graph.ts'
import { createHook, signDelivery } from '../../../test/kit/hooks.ts'
import { signInByLink } from '../../../test/kit/people.ts'
import { insertRuns } from '../../../test/kit/runs.ts'
import { createSignInLink } from '../../identity/sign-in-links.ts'
import { newId } from '../../kernel/id.ts'

const root = { type: 'task', function: 'f' }
const project = '/api/projects/:id'

/** A sound body for each route that takes one; a route that is not here takes none. */
const bodies: Readonly<Record<string, object>> = {
  'POST /api/providers': { name: 'new', kind: 'offline' },
  'POST /api/providers/:name/test': { model: 'any' },
  'PATCH /api/providers/:name': { prices: {} },
  'POST /api/projects': { name: 'new' },
  [`PATCH ${project}`]: { name: 'changed' },
  [`PATCH ${project}/settings`]: { poll_interval: 1_000 },
  [`POST ${project}/keys`]: { name: 'new', role: 'viewer' },
  [`POST ${project}/members`]: { email: 'new@example.com', role: 'viewer' },
  [`PATCH ${project}/members/:memberId`]: { role: 'member' },
  'POST /api/invitations/:token/accept': { name: 'New Person', password: 'long enough' },
  'POST /api/resets/:token/accept': { password: 'long enough' },
  'POST /api/auth/sign-in': { email: 'nobody@example.com', password: 'wrong' },
  'POST /api/auth/password': { new_password: 'another long one' },
  [`POST ${project}/agents`]: { name: 'new' },
  [`PATCH ${project}/agents/:agentId`]: { role: 'changed' },
  [`POST ${project}/agents/:agentId/trigger`]: { input: 'x' },
  [`POST ${project}/agents/:agentId/hooks`]: { name: 'new' },
  [`POST ${project}/agents/:agentId/budget`]: { add: 1 },
  [`POST ${project}/runs/:runId/resume`]: { input: 'x' },
  [`POST ${project}/runs/:runId/fork`]: { after_step: 0 },
  [`POST ${project}/flows`]: { name: 'new', root },
  [`POST ${project}/flows/recommend`]: { workload: 'Sum up 100 documents.' },
  [`POST ${project}/flows/validate`]: { root },
  [`PATCH ${project}/flows/:flowId`]: { name: 'changed' },
  [`POST ${project}/flow-runs`]: { flow_id: newId() },
  [`POST ${project}/flow-runs/:runId/workers`]: { add: 1 },
  [`PATCH ${project}/flow-runs/:runId`]: { workers: 1 },
  [`POST ${project}/flow-runs/:runId/topology`]: { topology: 'mesh' },
  [`POST ${project}/tasks`]: { title: 'new' },
  [`PATCH ${project}/tasks/:taskId`]: { status: 'completed' },
  [`POST ${project}/tasks/approve`]: { ids: [newId()] },
  [`POST ${project}/tasks/:taskId/reject`]: { reason: 'No.' },
  [`POST ${project}/objects`]: { type: 'Thing', properties: {} },
  [`PUT ${project}/objects/by-key`]: { type: 'Thing', key: 'one', properties: {} },
  [`PATCH ${project}/objects/:objectId`]: { properties: { touched: true } },
  [`POST ${project}/relationships`]: { type: 'likes', from_id: newId(), to_id: newId() },
  [`POST ${project}/mcp-servers`]: { name: 'new', url: 'http://127.0.0.1:1/mcp' },
  [`POST ${project}/mcp-servers/:name/approve`]: {},
  [`PUT ${project}/prompts/:prompt_id/variants/:variant_id`]: { messages: [{ role: 'system', content: 'x' }] },
  [`POST ${project}/prompts/:prompt_id/variants/:variant_id/rollback`]: { version: 1 },
  'POST /v1/prompts/get': { prompt_id: 'supervisor_planner', variant_id: 'blue' },
  [`PUT ${project}/systems/:variant`]: {
    supervisor: { prompt_id: 'p', model: null },
    specialists: [{ name: 'a', prompt_id: 'p', model: null, tools: [] }],
    finalizer: { prompt_id: 'p', model: null },
    escalation: { prompt_id: 'p', model: null },
    traffic: 0,
  },
  [`POST ${project}/evals`]: smallEval,
  'POST /v1/genui/layout': { context: { scenario: 'generic' } },
  'POST /v1/agent/run': { input: { task: 'x' } },
  'POST /v1/agent/chat': { id: 'x', messages: [] },
}

/**
 * useChat sends fields that its front end adds, and more with each version, so its route ignores fields that it does
 * not know.
 */
const TAKES_MORE: ReadonlySet<string> = new Set(['POST /v1/agent/chat'])

const served: string[] = []
const kit = await createTestApp({ signInLimit: 0, functions: { f: () => 1 }, onRoute: (route) => served.push(route) })
// HEAD routes are made from GET routes and answer without a message.
const routes = served.filter((route) => /^(?!HEAD)\w+ \/(api|v1)\//.test(route))
const writes = routes.filter((route) => !route.startsWith('GET '))
const bodiless = writes.filter((route) => bodies[route] === undefined)
const { id: projectId } = await kit.createProject()
const { cookie } = await signInByLink(kit, { instanceAdmin: true })

interface Failure {
  error?: { code: string; message: string }
}

/** Calls as a person who may do everything, with unknown ids in the path. */
const call = (route: string, query: string, body: unknown) =>
  kit.call<Failure>(`${route.replace(':id', projectId).replaceAll(/:\w+/g, newId())}${query}`, {
    cookie,
    body,
    headers: { 'x-project-id': projectId },
  })

const assertRefused = (answer: Awaited<ReturnType<typeof call>>, route: string, message: RegExp): void => {
  assert.equal(answer.status, 400, `${route}: ${answer.text}`)
  assert.equal(answer.body.error?.code, 'INVALID_REQUEST', route)
  assert.match(answer.body.error?.message ?? '', message, route)
}

test('every route refuses a query parameter that it does not know, and names it', async () => {
  assert.ok(routes.length > 80, `only ${routes.length} routes were found`)
  for (const route of routes) {
    const answer = await call(route, '?not_a_parameter=1', bodies[route])
    assertRefused(answer, route, /\bquery has no field "not_a_parameter"/)
  }
})

test('every route that writes refuses a property that it does not know, and names it', async () => {
  for (const route of writes.filter((each) => !TAKES_MORE.has(each))) {
    const answer = await call(route, '', { ...bodies[route], not_a_property: 1 })
    assertRefused(answer, route, /^body has no field "not_a_property"/)
  }
})

test('a route that takes no body refuses every body that is not empty', async () => {
  assert.ok(bodiless.length > 15, `only ${bodiless.length} routes were found`)
  for (const route of bodiless) {
    for (const body of [[], 'x', 1, false]) assertRefused(await call(route, '', body), route, /^body must be an object/)
  }
})

test('a route that takes no body accepts an empty body and an empty object', async () => {
  for (const route of bodiless) {
    const answered: number[] = []
    for (const sent of [{}, { headers: { 'content-type': 'application/json' } }, { body: {} }]) {
      // Each route has its own project and session, because some routes delete the project or end the session.
      const path = route.replace(':id', (await kit.createProject()).id).replaceAll(/:\w+/g, newId())
      const { cookie } = await signInByLink(kit, { instanceAdmin: true })
      answered.push((await kit.call(path, { cookie, ...sent })).status)
    }
    const [plain = 0] = answered
    assert.ok(plain < 300 || plain === 404, `${route}: ${plain}`)
    assert.deepEqual(answered, [plain, plain, plain], route)
  }
})

test('a refused request has changed nothing', async () => {
  const { id } = await kit.createProject()
  const base = `/api/projects/${id}`
  const { objectId, relationshipId, suggestionId } = await createGraph(kit, id)
  const [runId = ''] = await insertRuns(kit.pool, id, 1)
  const object = `${base}/objects/${objectId}`
  const changed = await kit.call(`PATCH ${object}`, { body: { properties: { name: 'changed' } } })
  assert.equal(changed.status, 200, changed.text)
  const shown = [object, `${base}/objects`, `${base}/tasks`, base, `${base}/runs/${runId}`, `${object}/relationships`]
  const read = () => Promise.all(shown.map(async (path) => (await kit.call(`GET ${path}`)).body))
  const before = await read()

  const patch = { properties: { name: 'again' } }
  const refused: [route: string, body?: unknown][] = [
    [`DELETE ${object}`, { expected_version: 1 }],
    [`DELETE ${object}?expected_version=9`],
    [`PATCH ${object}?expected_version=1`, patch],
    [`POST ${base}/objects?dry_run=true`, { type: 'Thing', properties: {} }],
    [`POST ${base}/tasks/${suggestionId}/approve?dry_run=true`],
    [`POST ${base}/tasks/${suggestionId}/approve`, { dry_run: true }],
    [`POST ${base}/tasks/${suggestionId}/reject?reason=no`],
    [`POST ${base}/tasks/approve?dry_run=true`, { ids: [suggestionId] }],
    [`DELETE ${base}/relationships/${relationshipId}?dry_run=true`],
    [`POST ${base}/runs/${runId}/cancel?force=true`, {}],
    [`POST ${base}/halt?until=tomorrow`],
    [`DELETE ${base}?confirm=false`],
  ]
  for (const [route, body] of refused) assert.equal((await kit.call(route, { body })).status, 400, route)
  assert.deepEqual(await read(), before)
})

test('a caller without access is refused before the parameters are checked', async () => {
  const path = `GET ${project}/agents/${newId()}?not_a_parameter=1`.replace(':id', projectId)
  assert.equal((await kit.call(path, { token: null })).status, 401)
  const stranger = await kit.createKey((await kit.createProject()).id, 'admin')
  assert.equal((await kit.call(path, { token: stranger.key })).status, 404)
})

test('pages, files, probes and the OpenAPI document ignore unknown parameters', async () => {
  const paths = [
    '/',
    '/account',
    '/projects/a-project/runs',
    '/docs',
    '/openapi.json',
    '/healthz',
    '/readyz',
    '/metrics',
  ]
  for (const path of [...paths, '/invitations/a-token', '/resets/a-token']) {
    assert.equal((await kit.call(`GET ${path}?not_a_parameter=1`)).status, 200, path)
  }
})

test('a sign-in link still opens with parameters that a mail program added', async () => {
  const { userId } = await signInByLink(kit)
  const link = `/sign-in/${await createSignInLink(kit.pool, userId)}?utm_source=mail`
  assert.equal((await kit.call(`GET ${link}`, { token: null })).status, 303)
})

test('a hook accepts any query that its sender adds', async () => {
  const { id, secret } = await createHook(kit, projectId)
  const body = { anything: { at: ['all'] } }
  const headers = signDelivery(secret, JSON.stringify(body))
  const answer = await kit.call(`POST /hooks/${id}?source=shop&not_a_parameter=1`, { token: null, headers, body })
  assert.equal(answer.status, 202, answer.text)
})
