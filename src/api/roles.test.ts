// Who may do what: every route × every identity. A route that is missing here, or here but not there, fails the test.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../test/kit/app.ts'
import { signInByLink } from '../../test/kit/people.ts'
import { newId } from '../kernel/id.ts'
import type { Role } from '../kernel/role.ts'

const identities = ['nobody', 'viewer', 'member', 'admin', 'other_admin', 'person', 'instance'] as const
type Identity = (typeof identities)[number]

/** What a call needs to be valid: made afresh for every cell, so that one identity's success is not another's 404. */
interface Ground {
  projectId: string
  keyId: string
  memberId: string
  providerName: string
  invitation: string
  sessionId: string
}

interface Row {
  route: string
  path?: (ground: Ground) => string
  body?: (ground: Ground) => unknown
  /** Expected statuses: nobody, viewer, member, admin of the project, admin of another, a signed-in stranger, instance. */
  expect: readonly [number, number, number, number, number, number, number]
}

const project = (suffix: string) => (ground: Ground) => `/api/projects/${ground.projectId}${suffix}`
const unique = (): string => newId().slice(-12)

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
]

/** Pages and static files: public, without data. They are listed so that a new one is noticed. */
const pages = /^GET \/($|assets\/|docs|sign-in\/|invitations\/)/

const routes: string[] = []
const kit = await createTestApp({ signInLimit: 0, onRoute: (route) => void routes.push(route) })

test('the table names every route there is, and no other', () => {
  const served = routes.filter((route) => !route.startsWith('HEAD ') && !pages.test(route))
  assert.deepEqual(served.toSorted(), matrix.map((row) => row.route).toSorted())
})

for (const row of matrix) {
  test(`${row.route} answers each identity as the table says`, async () => {
    const answered: number[] = []
    for (const identity of identities) {
      const { ground, credentials } = await prepare(identity)
      const [method = '', pattern = ''] = row.route.split(' ')
      const body = row.body?.(ground)
      const answer = await kit.call(`${method} ${row.path?.(ground) ?? pattern}`, {
        ...credentials,
        ...(body === undefined ? {} : { body }),
      })
      answered.push(answer.status)
    }
    assert.deepEqual(answered, row.expect, `${identities.join(', ')}`)
  })
}

async function prepare(identity: Identity): Promise<{ ground: Ground; credentials: object }> {
  const mine = await kit.createProject()
  const invited = await kit.call<{ id: string; invitation_url: string }>(`POST /api/projects/${mine.id}/members`, {
    body: { email: `${unique()}@example.com`, role: 'viewer' },
  })
  const providerName = `p-${unique()}`
  await kit.call('POST /api/providers', { body: { name: providerName, kind: 'offline' } })
  const ground: Ground = {
    projectId: mine.id,
    keyId: (await kit.createKey(mine.id, 'viewer')).id,
    memberId: invited.body.id,
    providerName,
    invitation: invited.body.invitation_url.split('/').at(-1) ?? '',
    sessionId: newId(),
  }
  return { ground, credentials: await credentialsOf(identity, mine.id) }
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
