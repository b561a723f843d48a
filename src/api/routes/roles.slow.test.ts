// The rights of every identity on every route. A route that is missing here, or listed here but not served, fails the
// test.
import assert from 'node:assert/strict'
import { insertAlert } from '../../../test/kit/alerts.ts'
import { createTestApp } from '../../../test/kit/app.ts'
import { evalRoles, smallEval } from '../../../test/kit/eval-roles.ts'
import { genuiRoles } from '../../../test/kit/genui-roles.ts'
import { createGraph } from '../../../test/kit/graph.ts'
import { createHook } from '../../../test/kit/hooks.ts'
import { signInByLink } from '../../../test/kit/people.ts'
import { promptRoles } from '../../../test/kit/prompt-roles.ts'
import { readRoles } from '../../../test/kit/read-roles.ts'
import { forAdmins, forMembers, type Ground, project, type Row, readable } from '../../../test/kit/role-table.ts'
import { insertRuns } from '../../../test/kit/runs.ts'
import { supervisorRoles } from '../../../test/kit/supervisor-roles.ts'
import { inTier, inTest as test } from '../../../test/kit/tiers.ts'
import { newId } from '../../kernel/id.ts'
import type { Role } from '../../kernel/role.ts'
import { runFailed } from '../../runs/end.ts'
import { startSupervisor } from '../../supervisor/start.ts'

const identities = ['nobody', 'viewer', 'member', 'admin', 'other_admin', 'person', 'instance'] as const
type Identity = (typeof identities)[number]

const unique = (): string => newId().slice(-12)

const flowRoot = { type: 'task', function: 'f' }

const matrix: Row[] = [
  { route: 'GET /healthz', expect: [200, 200, 200, 200, 200, 200, 200] },
  { route: 'GET /readyz', expect: [200, 200, 200, 200, 200, 200, 200] },
  { route: 'GET /metrics', expect: [401, 403, 403, 403, 403, 403, 200] },
  { route: 'GET /openapi.json', expect: [200, 200, 200, 200, 200, 200, 200] },
  { route: 'GET /api/me', expect: [401, 200, 200, 200, 200, 200, 200] },
  { route: 'GET /api/audit', expect: [401, 403, 403, 403, 403, 403, 200] },
  { route: 'GET /api/audit/verify', expect: [401, 403, 403, 403, 403, 403, 200] },

  { route: 'GET /api/providers', expect: [401, 403, 403, 403, 403, 403, 200] },
  {
    route: 'POST /api/providers',
    body: () => ({ name: `p-${unique()}`, kind: 'offline' }),
    expect: [401, 403, 403, 403, 403, 403, 201],
  },
  {
    route: 'GET /api/providers/:name',
    path: (ground) => `/api/providers/${ground.providerName}`,
    expect: [401, 403, 403, 403, 403, 403, 200],
  },
  {
    route: 'PATCH /api/providers/:name',
    path: (ground) => `/api/providers/${ground.providerName}`,
    body: () => ({ prices: {} }),
    expect: [401, 403, 403, 403, 403, 403, 200],
  },
  {
    route: 'DELETE /api/providers/:name',
    path: (ground) => `/api/providers/${ground.providerName}`,
    expect: [401, 403, 403, 403, 403, 403, 204],
  },

  { route: 'GET /api/projects', expect: [401, 200, 200, 200, 200, 200, 200] },
  { route: 'POST /api/projects', body: () => ({ name: 'new' }), expect: [401, 403, 403, 403, 403, 403, 201] },
  { route: 'GET /api/projects/:id', path: project(''), expect: [401, 200, 200, 200, 404, 404, 200] },
  {
    route: 'PATCH /api/projects/:id',
    path: project(''),
    body: () => ({ name: 'changed' }),
    expect: [401, 403, 403, 200, 404, 404, 200],
  },
  { route: 'DELETE /api/projects/:id', path: project(''), expect: [401, 403, 403, 204, 404, 404, 204] },
  { route: 'POST /api/projects/:id/halt', path: project('/halt'), expect: [401, 403, 403, 200, 404, 404, 200] },
  { route: 'POST /api/projects/:id/unhalt', path: project('/unhalt'), expect: [401, 403, 403, 200, 404, 404, 200] },
  { route: 'GET /api/events', expect: [401, 200, 200, 200, 200, 200, 200] },
  { route: 'GET /api/projects/:id/events', path: project('/events'), expect: readable },
  { route: 'GET /api/projects/:id/settings', path: project('/settings'), expect: [401, 200, 200, 200, 404, 404, 200] },
  {
    route: 'PATCH /api/projects/:id/settings',
    path: project('/settings'),
    body: () => ({ poll_interval: 1000 }),
    expect: [401, 403, 403, 200, 404, 404, 200],
  },
  { route: 'GET /api/projects/:id/audit', path: project('/audit'), expect: [401, 403, 403, 200, 404, 404, 200] },
  { route: 'GET /api/projects/:id/keys', path: project('/keys'), expect: [401, 403, 403, 200, 404, 404, 200] },
  {
    route: 'POST /api/projects/:id/keys',
    path: project('/keys'),
    body: () => ({ name: 'k', role: 'viewer' }),
    expect: [401, 403, 403, 201, 404, 404, 201],
  },
  {
    route: 'DELETE /api/projects/:id/keys/:keyId',
    path: (ground) => project(`/keys/${ground.keyId}`)(ground),
    expect: [401, 403, 403, 204, 404, 404, 204],
  },
  { route: 'GET /api/projects/:id/members', path: project('/members'), expect: [401, 200, 200, 200, 404, 404, 200] },
  {
    route: 'POST /api/projects/:id/members',
    path: project('/members'),
    body: () => ({ email: `${unique()}@example.com`, role: 'viewer' }),
    expect: [401, 403, 403, 201, 404, 404, 201],
  },
  {
    route: 'PATCH /api/projects/:id/members/:memberId',
    path: (ground) => project(`/members/${ground.memberId}`)(ground),
    body: () => ({ role: 'member' }),
    expect: [401, 403, 403, 200, 404, 404, 200],
  },
  {
    route: 'DELETE /api/projects/:id/members/:memberId',
    path: (ground) => project(`/members/${ground.memberId}`)(ground),
    expect: [401, 403, 403, 204, 404, 404, 204],
  },

  {
    route: 'GET /api/invitations/:token',
    path: (ground) => `/api/invitations/${ground.invitation}`,
    expect: [200, 200, 200, 200, 200, 200, 200],
  },
  {
    route: 'POST /api/invitations/:token/accept',
    path: (ground) => `/api/invitations/${ground.invitation}/accept`,
    body: () => ({ name: 'New Person', password: 'long enough' }),
    expect: [200, 200, 200, 200, 200, 200, 200],
  },
  {
    route: 'POST /api/users/:id/reset',
    path: (ground) => `/api/users/${ground.userId}/reset`,
    expect: [401, 403, 403, 403, 403, 403, 201],
  },
  {
    route: 'GET /api/resets/:token',
    path: (ground) => `/api/resets/${ground.reset}`,
    expect: [200, 200, 200, 200, 200, 200, 200],
  },
  {
    route: 'POST /api/resets/:token/accept',
    path: (ground) => `/api/resets/${ground.reset}/accept`,
    body: () => ({ password: 'long enough' }),
    expect: [200, 200, 200, 200, 200, 200, 200],
  },
  {
    route: 'POST /api/auth/sign-in',
    body: () => ({ email: `${unique()}@example.com`, password: 'wrong' }),
    expect: [401, 401, 401, 401, 401, 401, 401],
  },
  { route: 'POST /api/auth/sign-out', expect: [204, 204, 204, 204, 204, 204, 204] },
  { route: 'GET /api/auth/sessions', expect: [401, 403, 403, 403, 403, 200, 403] },
  {
    route: 'DELETE /api/auth/sessions/:sessionId',
    path: (ground) => `/api/auth/sessions/${ground.sessionId}`,
    expect: [401, 403, 403, 403, 403, 404, 403],
  },
  {
    route: 'POST /api/auth/password',
    body: () => ({ new_password: 'another long one' }),
    expect: [401, 403, 403, 403, 403, 204, 403],
  },

  { route: 'GET /api/projects/:id/agents', path: project('/agents'), expect: readable },
  {
    route: 'POST /api/projects/:id/agents',
    path: project('/agents'),
    body: () => ({ name: 'new' }),
    expect: [401, 403, 403, 201, 404, 404, 201],
  },
  {
    route: 'GET /api/projects/:id/agents/:agentId',
    path: (ground) => project(`/agents/${ground.agentId}`)(ground),
    expect: readable,
  },
  {
    route: 'PATCH /api/projects/:id/agents/:agentId',
    path: (ground) => project(`/agents/${ground.agentId}`)(ground),
    body: () => ({ role: 'changed' }),
    expect: [401, 403, 403, 200, 404, 404, 200],
  },
  {
    route: 'DELETE /api/projects/:id/agents/:agentId',
    path: (ground) => project(`/agents/${ground.agentId}`)(ground),
    expect: [401, 403, 403, 204, 404, 404, 204],
  },
  {
    route: 'POST /api/projects/:id/agents/:agentId/trigger',
    path: (ground) => project(`/agents/${ground.agentId}/trigger`)(ground),
    body: () => ({ input: 'x' }),
    headers: { prefer: 'respond-async' },
    expect: [401, 403, 202, 202, 404, 404, 202],
  },
  {
    route: 'GET /api/projects/:id/agents/:agentId/hooks',
    path: (ground) => project(`/agents/${ground.agentId}/hooks`)(ground),
    expect: readable,
  },
  {
    route: 'POST /api/projects/:id/agents/:agentId/hooks',
    path: (ground) => project(`/agents/${ground.agentId}/hooks`)(ground),
    body: () => ({ name: 'new' }),
    expect: [401, 403, 403, 201, 404, 404, 201],
  },
  {
    route: 'POST /api/projects/:id/agents/:agentId/hooks/:hookId/rotate',
    path: (ground) => project(`/agents/${ground.agentId}/hooks/${ground.hookId}/rotate`)(ground),
    expect: [401, 403, 403, 200, 404, 404, 200],
  },
  {
    route: 'DELETE /api/projects/:id/agents/:agentId/hooks/:hookId',
    path: (ground) => project(`/agents/${ground.agentId}/hooks/${ground.hookId}`)(ground),
    expect: [401, 403, 403, 204, 404, 404, 204],
  },
  {
    // No credentials open a hook, not even the instance admin's: only the hook's own secret does.
    route: 'POST /hooks/:hookId',
    path: (ground) => `/hooks/${ground.hookId}`,
    body: () => ({}),
    expect: [401, 401, 401, 401, 401, 401, 401],
  },
  { route: 'GET /api/projects/:id/runs', path: project('/runs'), expect: readable },
  ...['', '/steps', '/waits', '/effects', '/events'].map(
    (part): Row => ({
      route: `GET /api/projects/:id/runs/:runId${part}`,
      path: (ground) => project(`/runs/${ground.runId}${part}`)(ground),
      expect: readable,
    }),
  ),
  {
    route: 'POST /api/projects/:id/runs/:runId/cancel',
    path: (ground) => project(`/runs/${ground.runId}/cancel`)(ground),
    expect: [401, 403, 200, 200, 404, 404, 200],
  },
  {
    // The run does not wait for a provider.
    route: 'POST /api/projects/:id/runs/:runId/try-now',
    path: (ground) => project(`/runs/${ground.runId}/try-now`)(ground),
    expect: [401, 403, 409, 409, 404, 404, 409],
  },
  {
    route: 'POST /api/projects/:id/runs/:runId/resume',
    path: (ground) => project(`/runs/${ground.runId}/resume`)(ground),
    headers: { prefer: 'respond-async' },
    expect: [401, 403, 202, 202, 404, 404, 202],
  },
  {
    route: 'POST /api/projects/:id/runs/:runId/fork',
    path: (ground) => project(`/runs/${ground.runId}/fork`)(ground),
    body: () => ({ after_step: 0 }),
    headers: { prefer: 'respond-async' },
    expect: [401, 403, 202, 202, 404, 404, 202],
  },
  { route: 'GET /api/projects/:id/flows', path: project('/flows'), expect: readable },
  {
    route: 'POST /api/projects/:id/flows',
    path: project('/flows'),
    body: () => ({ name: 'new', root: flowRoot }),
    expect: [401, 403, 403, 201, 404, 404, 201],
  },
  { route: 'GET /api/projects/:id/flow-templates', path: project('/flow-templates'), expect: readable },
  {
    route: 'POST /api/projects/:id/flows/recommend',
    path: project('/flows/recommend'),
    body: () => ({ workload: 'Sum up 100 documents.' }),
    expect: readable,
  },
  {
    route: 'POST /api/projects/:id/flows/validate',
    path: project('/flows/validate'),
    body: () => ({ root: flowRoot }),
    expect: readable,
  },
  {
    route: 'GET /api/projects/:id/flows/:flowId',
    path: (ground) => project(`/flows/${ground.flowId}`)(ground),
    expect: readable,
  },
  {
    route: 'PATCH /api/projects/:id/flows/:flowId',
    path: (ground) => project(`/flows/${ground.flowId}`)(ground),
    body: () => ({ name: 'changed' }),
    expect: [401, 403, 403, 200, 404, 404, 200],
  },
  {
    route: 'DELETE /api/projects/:id/flows/:flowId',
    path: (ground) => project(`/flows/${ground.flowId}`)(ground),
    expect: [401, 403, 403, 204, 404, 404, 204],
  },
  { route: 'GET /api/projects/:id/flow-runs', path: project('/flow-runs'), expect: readable },
  {
    route: 'POST /api/projects/:id/flow-runs',
    path: project('/flow-runs'),
    body: ({ flowId }) => ({ flow_id: flowId }),
    expect: forMembers(202),
  },
  ...['', '/tasks', '/trace', '/metrics', '/topology', '/output'].map(
    (part): Row => ({
      route: `GET /api/projects/:id/flow-runs/:runId${part}`,
      path: (ground) => project(`/flow-runs/${ground.flowRunId}${part}`)(ground),
      expect: readable,
    }),
  ),
  {
    route: 'GET /api/projects/:id/flow-runs/:runId/events',
    path: (ground) => project(`/flow-runs/${ground.endedFlowRunId}/events`)(ground),
    expect: readable,
  },
  {
    route: 'POST /api/projects/:id/flow-runs/:runId/cancel',
    path: (ground) => project(`/flow-runs/${ground.flowRunId}/cancel`)(ground),
    expect: forMembers(200),
  },
  {
    route: 'POST /api/projects/:id/flow-runs/:runId/resume',
    path: (ground) => project(`/flow-runs/${ground.flowRunId}/resume`)(ground),
    expect: forMembers(409),
  },
  {
    route: 'POST /api/projects/:id/flow-runs/:runId/workers',
    path: (ground) => project(`/flow-runs/${ground.flowRunId}/workers`)(ground),
    body: () => ({ add: 1 }),
    expect: forMembers(200),
  },
  {
    route: 'PATCH /api/projects/:id/flow-runs/:runId',
    path: (ground) => project(`/flow-runs/${ground.flowRunId}`)(ground),
    body: () => ({ workers: 2 }),
    expect: forMembers(200),
  },
  {
    // A caller with access gets the answer that there is nothing to switch.
    route: 'POST /api/projects/:id/flow-runs/:runId/topology',
    path: (ground) => project(`/flow-runs/${ground.flowRunId}/topology`)(ground),
    body: () => ({ topology: 'mesh' }),
    expect: forMembers(409),
  },
  { route: 'GET /api/projects/:id/alerts', path: project('/alerts'), expect: readable },
  {
    route: 'POST /api/projects/:id/alerts/:alertId/ack',
    path: (ground) => project(`/alerts/${ground.alertId}/ack`)(ground),
    expect: forMembers(200),
  },
  ...['start', 'stop', 'restart'].map((verb) => ({
    route: `POST /api/projects/:id/agents/:agentId/${verb}`,
    path: ({ projectId, agentId }: Ground) => `/api/projects/${projectId}/agents/${agentId}/${verb}`,
    expect: forAdmins,
  })),
  {
    route: 'POST /api/projects/:id/agents/:agentId/budget',
    path: (ground) => project(`/agents/${ground.agentId}/budget`)(ground),
    body: () => ({ add: 1 }),
    // The agent has no limit that could be raised.
    expect: [401, 403, 403, 409, 404, 404, 409],
  },
  {
    route: 'GET /api/projects/:id/agents/:agentId/messages',
    path: (ground) => project(`/agents/${ground.agentId}/messages`)(ground),
    expect: readable,
  },
  { route: 'GET /api/projects/:id/org', path: project('/org'), expect: readable },
  { route: 'GET /api/projects/:id/org/health', path: project('/org/health'), expect: readable },
  ...['start', 'stop', 'restart'].map((verb) => ({
    route: `POST /api/projects/:id/org/${verb}`,
    path: ({ projectId }: Ground) => `/api/projects/${projectId}/org/${verb}`,
    expect: forAdmins,
  })),
  { route: 'GET /api/projects/:id/tasks', path: project('/tasks'), expect: readable },
  {
    route: 'POST /api/projects/:id/tasks',
    path: project('/tasks'),
    body: () => ({ title: 'new' }),
    expect: [401, 403, 201, 201, 404, 404, 201],
  },
  {
    route: 'GET /api/projects/:id/tasks/:taskId',
    path: (ground) => project(`/tasks/${ground.taskId}`)(ground),
    expect: readable,
  },
  {
    route: 'PATCH /api/projects/:id/tasks/:taskId',
    path: (ground) => project(`/tasks/${ground.taskId}`)(ground),
    body: () => ({ status: 'completed' }),
    expect: [401, 403, 200, 200, 404, 404, 200],
  },
  {
    route: 'POST /api/projects/:id/tasks/approve',
    path: project('/tasks/approve'),
    body: ({ graph }) => ({ ids: [graph.suggestionId] }),
    expect: forMembers(200),
  },
  ...['approve', 'reject'].map((verb) => ({
    route: `POST /api/projects/:id/tasks/:taskId/${verb}`,
    path: ({ projectId, graph }: Ground) => `/api/projects/${projectId}/tasks/${graph.suggestionId}/${verb}`,
    expect: forMembers(200),
  })),
  { route: 'GET /api/projects/:id/objects', path: project('/objects'), expect: readable },
  {
    route: 'POST /api/projects/:id/objects',
    path: project('/objects'),
    body: () => ({ type: 'Thing', properties: {} }),
    expect: forMembers(201),
  },
  {
    route: 'PUT /api/projects/:id/objects/by-key',
    path: project('/objects/by-key'),
    body: () => ({ type: 'Thing', key: newId(), properties: {} }),
    expect: forMembers(201),
  },
  ...['', '/history', '/relationships'].map((part) => ({
    route: `GET /api/projects/:id/objects/:objectId${part}`,
    path: ({ projectId, graph }: Ground) => `/api/projects/${projectId}/objects/${graph.objectId}${part}`,
    expect: readable,
  })),
  {
    route: 'PATCH /api/projects/:id/objects/:objectId',
    path: ({ projectId, graph }) => `/api/projects/${projectId}/objects/${graph.objectId}`,
    body: () => ({ properties: { touched: true } }),
    expect: forMembers(200),
  },
  {
    route: 'DELETE /api/projects/:id/objects/:objectId',
    path: ({ projectId, graph }) => `/api/projects/${projectId}/objects/${graph.objectId}`,
    expect: forMembers(204),
  },
  {
    route: 'POST /api/projects/:id/relationships',
    path: project('/relationships'),
    body: ({ graph }) => ({ type: 'likes', from_id: graph.objectId, to_id: graph.otherId }),
    expect: forMembers(201),
  },
  {
    route: 'DELETE /api/projects/:id/relationships/:relId',
    path: ({ projectId, graph }) => `/api/projects/${projectId}/relationships/${graph.relationshipId}`,
    expect: forMembers(204),
  },
  {
    route: 'GET /api/projects/:id/agents/:agentId/processing-log',
    path: ({ projectId, graph }) => `/api/projects/${projectId}/agents/${graph.reactorId}/processing-log`,
    expect: readable,
  },
  {
    route: 'POST /api/projects/:id/agents/:agentId/processing-log/:entryId/retry',
    path: ({ projectId, graph }) =>
      `/api/projects/${projectId}/agents/${graph.reactorId}/processing-log/${graph.entryId}/retry`,
    expect: forMembers(200),
  },
  ...promptRoles,
  ...readRoles,
  ...genuiRoles,
  ...evalRoles,
  ...supervisorRoles,
  { route: 'GET /api/projects/:id/tools', path: project('/tools'), expect: readable },
  { route: 'GET /api/projects/:id/schedule', path: project('/schedule'), expect: readable },
  {
    route: 'GET /api/projects/:id/mcp-servers',
    path: project('/mcp-servers'),
    expect: [401, 200, 200, 200, 404, 404, 200],
  },
  {
    // The server cannot be reached, so a caller with access is answered 400.
    route: 'POST /api/projects/:id/mcp-servers',
    path: project('/mcp-servers'),
    body: () => ({ name: 'new', url: 'http://127.0.0.1:1/mcp' }),
    expect: [401, 403, 403, 400, 404, 404, 400],
  },
  {
    route: 'GET /api/projects/:id/mcp-servers/:name',
    path: (ground) => project(`/mcp-servers/${ground.mcpServer}`)(ground),
    expect: [401, 200, 200, 200, 404, 404, 200],
  },
  {
    route: 'POST /api/projects/:id/mcp-servers/:name/approve',
    path: (ground) => project(`/mcp-servers/${ground.mcpServer}/approve`)(ground),
    body: () => ({}),
    expect: [401, 403, 403, 400, 404, 404, 400],
  },
  {
    route: 'DELETE /api/projects/:id/mcp-servers/:name',
    path: (ground) => project(`/mcp-servers/${ground.mcpServer}`)(ground),
    expect: [401, 403, 403, 204, 404, 404, 204],
  },
]

/** Pages and static files, which are public and hold no data. They are listed so that a new file is noticed. */
const pages = /^GET \/($|account$|projects\/\*|assets\/|docs|sign-in\/|invitations\/|resets\/)/

const routes: string[] = []
const kit = await createTestApp({
  signInLimit: 0,
  functions: { f: () => 1 },
  onRoute: (route) => void routes.push(route),
})

test('the table names every route, and no other', () => {
  const served = routes.filter((route) => !route.startsWith('HEAD ') && !pages.test(route))
  assert.deepEqual(served.toSorted(), matrix.map((row) => row.route).toSorted())
})

// A third of the routes are tested in `npm test`; the identities are the same for each.
for (const [place, row] of matrix.entries()) {
  inTier(place % 3 === 0)(`${row.route} answers each identity as the table says`, async () => {
    const answered: number[] = []
    const [method = '', pattern = ''] = row.route.split(' ')
    let ground = await prepare()
    for (const identity of identities) {
      const credentials = await credentialsOf(identity, ground.projectId)
      const body = row.body?.(ground)
      const answer = await kit.call(`${method} ${row.path?.(ground) ?? pattern}`, {
        ...credentials,
        ...(body === undefined ? {} : { body }),
        ...(row.headers ? { headers: typeof row.headers === 'function' ? row.headers(ground) : row.headers } : {}),
      })
      answered.push(answer.status)
      if (method !== 'GET' && answer.status < 400) ground = await prepare()
    }
    assert.deepEqual(answered, row.expect, `${identities.join(', ')}`)
  })
}

async function prepare(): Promise<Ground> {
  const mine = await kit.createProject()
  const invited = await kit.call<{ id: string; invitation_url: string }>(`POST /api/projects/${mine.id}/members`, {
    body: { email: `${unique()}@example.com`, role: 'viewer' },
  })
  const providerName = `p-${unique()}`
  await kit.call('POST /api/providers', { body: { name: providerName, kind: 'offline' } })
  const { userId } = await signInByLink(kit)
  const reset = await kit.call<{ reset_url: string }>(`POST /api/users/${userId}/reset`)
  return {
    userId,
    reset: reset.body.reset_url.split('/').at(-1) ?? '',
    projectId: mine.id,
    keyId: (await kit.createKey(mine.id, 'viewer')).id,
    memberId: invited.body.id,
    providerName,
    invitation: invited.body.invitation_url.split('/').at(-1) ?? '',
    sessionId: newId(),
    ...(await prepareRuns(mine.id)),
    ...(await prepareFlows(mine.id)),
  }
}

async function prepareRuns(
  projectId: string,
): Promise<Pick<Ground, 'agentId' | 'hookId' | 'runId' | 'supervisorRunId' | 'taskId' | 'mcpServer' | 'graph'>> {
  const { id: hookId, agentId } = await createHook(kit, projectId)
  const [runId = ''] = await insertRuns(kit.pool, projectId, 1)
  await kit.pool.query('update agent_runs set agent_id = $2 where id = $1', [runId, agentId])
  const events = [
    { kind: 'run.started', data: { agent_id: agentId, input: 'x' } },
    { kind: 'run.paused', data: { pause_reason: 'timeout', summary: null } },
  ]
  const set = { status: 'paused', pause_reason: 'timeout', ended: true } as const
  await kit.services.journal.append({ runId, fence: 1, events, change: { set } })
  const task = await kit.call<{ id: string }>(`POST /api/projects/${projectId}/tasks`, { body: { title: 'x' } })
  await kit.pool.query(
    `insert into mcp_servers (id, project_id, name, url, set_by_instance_admin, tools)
     values ($1, $2, 'registered', 'http://127.0.0.1:1/mcp', true, '[]')`,
    [newId(), projectId],
  )
  const graph = await createGraph(kit, projectId)
  const supervisorRunId = await prepareSupervisor(projectId)
  return { agentId, hookId, runId, supervisorRunId, taskId: task.body.id, mcpServer: 'registered', graph }
}

/** The stream of a run that has ended closes by itself. */
async function prepareSupervisor(projectId: string): Promise<string> {
  const start = { task: 'x', metadata: {}, contextId: null, requested: 'blue', ofProcess: null }
  const { id } = await startSupervisor(kit.pool, projectId, start)
  const { event, set } = runFailed('MODEL_ERROR', 'No.', null)
  await kit.services.journal.append({ runId: id, fence: 0, events: [event], change: { set } })
  return id
}

async function prepareFlows(
  projectId: string,
): Promise<Pick<Ground, 'flowId' | 'flowRunId' | 'endedFlowRunId' | 'alertId' | 'evalId'>> {
  const made = async (what: string, body: object): Promise<string> =>
    (await kit.call<{ id: string }>(`POST /api/projects/${projectId}/${what}`, { body })).body.id
  const flowId = await made('flows', { name: 'a flow', root: flowRoot })
  const endedFlowRunId = await made('flow-runs', { flow_id: flowId })
  // The stream of an ended run closes by itself.
  await kit.pool.query(
    `update flow_runs set status = 'failed', completed_at = muster.now(), ready_at = null where id = $1`,
    [endedFlowRunId],
  )
  const flowRunId = await made('flow-runs', { flow_id: flowId })
  const alertId = await insertAlert(kit.pool, projectId, flowRunId)
  return { flowId, flowRunId, endedFlowRunId, alertId, evalId: await made('evals', smallEval) }
}

async function credentialsOf(identity: Identity, projectId: string): Promise<object> {
  switch (identity) {
    case 'nobody':
      return { token: null }
    case 'instance':
      return {}
    case 'person':
      return { cookie: (await signInByLink(kit, { instanceAdmin: false })).cookie }
    case 'other_admin':
      return { token: (await kit.createKey((await kit.createProject()).id, 'admin')).key }
    default:
      return { token: (await kit.createKey(projectId, identity satisfies Role)).key }
  }
}
