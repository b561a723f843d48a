// A project that was deleted a moment ago: its rows are still there, and no request finds it any more.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { createHook, signDelivery } from '../../../test/kit/hooks.ts'
import { signInByLink } from '../../../test/kit/people.ts'
import { newId } from '../../kernel/id.ts'

const kit = await createTestApp()

interface List {
  items: { id: string; name: string }[]
}

/** Every route below a project, as a request to this one. */
async function routesOf(projectId: string): Promise<string[]> {
  const { paths } = (await kit.call<{ paths: Record<string, Record<string, unknown>> }>('GET /openapi.json')).body
  return Object.entries(paths)
    .filter(([path]) => path.startsWith('/api/projects/{id}'))
    .flatMap(([path, operations]) =>
      Object.keys(operations).map(
        (method) => `${method.toUpperCase()} ${path.replace('{id}', projectId).replaceAll(/\{\w+\}/g, newId())}`,
      ),
    )
}

test('every route of a deleted project is 404 at once, for its members and the instance admin', async () => {
  const project = await kit.createProject('doomed')
  const { key } = await kit.createKey(project.id, 'admin')
  const member = await signInByLink(kit, { member: { projectId: project.id, role: 'admin' } })
  const admin = await signInByLink(kit, { instanceAdmin: true })
  await kit.createAgent(project.id)
  assert.equal((await kit.call(`GET /api/projects/${project.id}`, { token: key })).status, 200)
  assert.equal((await kit.call(`DELETE /api/projects/${project.id}`, { cookie: member.cookie })).status, 204)

  const { rowCount } = await kit.pool.query('select from agents where project_id = $1', [project.id])
  assert.equal(rowCount, 1, 'rows go in the background')
  const routes = await routesOf(project.id)
  assert.ok(routes.length > 60, `only ${routes.length} routes were found`)
  for (const route of routes) {
    const body = /^(GET|DELETE)/.test(route) ? {} : { body: {} }
    assert.equal((await kit.call(route, body)).status, 404, `${route}, admin token`)
    assert.equal((await kit.call(route, { cookie: admin.cookie, ...body })).status, 404, `${route}, instance admin`)
    assert.equal((await kit.call(route, { cookie: member.cookie, ...body })).status, 404, `${route}, member`)
    assert.equal((await kit.call(route, { token: key, ...body })).status, 401, `${route}, key`)
  }
})

test('a deleted project is in no list, and its name can be used at once', async () => {
  const project = await kit.createProject('twice')
  const member = await signInByLink(kit, { member: { projectId: project.id, role: 'viewer' } })
  const admin = await signInByLink(kit, { instanceAdmin: true })
  assert.equal((await kit.call(`DELETE /api/projects/${project.id}`)).status, 204)
  for (const who of [{}, { cookie: member.cookie }, { cookie: admin.cookie }]) {
    const list = await kit.call<List>('GET /api/projects?limit=100', who)
    assert.ok(!list.body.items.some(({ id }) => id === project.id))
  }
  const me = await kit.call('GET /api/me', { cookie: member.cookie })
  assert.ok(!me.text.includes(project.id), me.text)
  const again = await kit.createProject('twice')
  assert.equal(again.name, 'twice')
  assert.equal((await kit.call(`GET /api/projects/${again.id}`)).status, 200)
})

test('a hook and an invitation of a deleted project are 404', async () => {
  const project = await kit.createProject('left')
  const hook = await createHook(kit, project.id)
  const deliver = () =>
    kit.app.inject({
      method: 'POST',
      url: `/hooks/${hook.id}`,
      headers: signDelivery(hook.secret, '{}'),
      payload: '{}',
    })
  assert.equal((await deliver()).statusCode, 202)
  const invited = await kit.call<{ invitation_url: string }>(`POST /api/projects/${project.id}/members`, {
    body: { email: 'late@example.com', role: 'viewer' },
  })
  const token = invited.text.match(/invitations\/([\w-]+)/)?.[1]
  assert.ok(token, invited.text)
  assert.equal((await kit.call(`GET /api/invitations/${token}`, { token: null })).status, 200)

  assert.equal((await kit.call(`DELETE /api/projects/${project.id}`)).status, 204)
  assert.equal((await deliver()).statusCode, 404)
  assert.equal((await kit.call(`GET /api/invitations/${token}`, { token: null })).status, 404)
})

test('a second deletion of a project is 404 and leaves no second audit entry', async () => {
  const project = await kit.createProject()
  const answers = await Promise.all([1, 2, 3].map(() => kit.call(`DELETE /api/projects/${project.id}`)))
  assert.deepEqual(answers.map(({ status }) => status).sort(), [204, 404, 404])
  const { rowCount } = await kit.pool.query(
    `select from audit_log where action = 'project.delete' and project_id = $1`,
    [project.id],
  )
  assert.equal(rowCount, 1)
})
