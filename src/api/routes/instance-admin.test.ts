import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp, INSTANCE_ID } from '../../../test/kit/app.ts'
import { cookieOf } from '../../../test/kit/people.ts'
import { inTransaction } from '../../db/transaction.ts'
import { bindInstance } from '../../identity/instance.ts'
import { createSignInLink } from '../../identity/sign-in-links.ts'
import { ensureInstanceAdmin } from '../../identity/users.ts'
import { newId } from '../../kernel/id.ts'
import type { GraphObject, ObjectVersion, Relationship } from '../../kernel/object.ts'
import type { Task } from '../../kernel/task.ts'
import { suggest } from '../../tasks/suggest.ts'

const kit = await createTestApp({ signInLimit: 0 })

test('the instance admin opens the link, chooses a password, and signs in with it from then on', async () => {
  const admin = await ensureInstanceAdmin(kit.pool)
  assert.equal((await ensureInstanceAdmin(kit.pool)).id, admin.id)
  const link = await createSignInLink(kit.pool, admin.id)
  const cookie = cookieOf((await kit.call(`GET /sign-in/${link}`, { token: null })).headers)
  const me = await kit.call('GET /api/me', { cookie })
  assert.equal(me.body.instance_admin, true)
  assert.equal(me.body.has_password, false)
  const set = await kit.call('POST /api/auth/password', { cookie, body: { new_password: 'a password of mine' } })
  assert.equal(set.status, 204)
  assert.equal((await kit.call('GET /api/me', { cookie })).body.has_password, true)
  const again = await kit.call('POST /api/auth/sign-in', {
    token: null,
    body: { email: admin.email, password: 'a password of mine' },
  })
  assert.equal(again.status, 200, again.text)
  const mine = cookieOf(again.headers)
  assert.equal((await kit.call('GET /api/providers', { cookie: mine })).status, 200)
  assert.equal((await kit.call('POST /api/projects', { cookie: mine, body: { name: 'by a person' } })).status, 201)
})

test('the id of an instance never changes', async () => {
  const first = await bindInstance(kit.pool, 'a fingerprint')
  const again = await bindInstance(kit.pool, 'a fingerprint')
  assert.deepEqual([first.isFirstStart, again.isFirstStart], [true, false])
  assert.equal(again.id, first.id)
})

test('the admin token acts as the instance: in histories, tasks, approvals and the audit', async () => {
  assert.equal((await kit.call('GET /api/me')).body.id, INSTANCE_ID)
  const project = await kit.createProject()
  const base = `/api/projects/${project.id}`
  const create = async () =>
    (await kit.call<GraphObject>(`POST ${base}/objects`, { body: { type: 'Person', properties: { n: 1 } } })).body
  const [object, other] = [await create(), await create()]
  const related = await kit.call<Relationship>(`POST ${base}/relationships`, {
    body: { type: 'knows', from_id: object.id, to_id: other.id },
  })
  const task = await kit.call<Task>(`POST ${base}/tasks`, { body: { title: 'Work' } })
  assert.deepEqual([object.actor_id, related.body.actor_id], [INSTANCE_ID, INSTANCE_ID])
  assert.deepEqual(task.body.created_by, { type: 'user', id: INSTANCE_ID })

  const agent = await kit.createAgent(project.id, { execution_mode: 'suggest' })
  const taskId = newId()
  const change = {
    op: 'update' as const,
    object_type: 'Person',
    object_id: object.id,
    base_version: 1,
    before: { n: 1 },
    after: { n: 2 },
  }
  const shared = { projectId: project.id, agentId: agent.id, runId: newId(), reasoning: 'Because.', depth: 0 }
  await inTransaction(kit.pool, (tx) => suggest(tx, { ...shared, taskId, change }))
  assert.equal((await kit.call(`POST ${base}/tasks/${taskId}/approve`)).status, 200)
  const history = await kit.call<{ items: ObjectVersion[] }>(`GET ${base}/objects/${object.id}/history`)
  assert.deepEqual(
    history.body.items.map(({ actor_id, approved_by }) => [actor_id, approved_by]),
    [
      [agent.id, INSTANCE_ID],
      [INSTANCE_ID, null],
    ],
  )
  await kit.call(`DELETE ${base}/objects/${other.id}`)
  await kit.call(`POST ${base}/halt`)
  const audit = await kit.call<{ items: { action: string; actor: { type: string; id: string | null } }[] }>(
    `GET ${base}/audit?limit=200`,
  )
  const acts = audit.body.items.filter(({ actor }) => actor.type !== 'system')
  assert.ok(acts.length >= 8)
  for (const { action, actor } of acts) assert.ok(actor.id === INSTANCE_ID || actor.type === 'agent', action)
})
