// Hooks as an agent's owner handles them. Deliveries to hooks are in hook-deliveries.slow.test.ts.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import { dumpRows } from '../../../test/kit/database.ts'
import { createHook, signDelivery } from '../../../test/kit/hooks.ts'
import type { Hook, NewHook } from '../../kernel/hook.ts'
import { newId } from '../../kernel/id.ts'
import { createRedactor } from '../../observe/redact.ts'

type List = { items: Hook[]; next_cursor: string | null }
const HOUR_MS = 3_600_000

const kit = await createTestApp({ publicUrl: new URL('https://muster.example.com') })
const project = await kit.createProject()
const agent = await kit.createAgent(project.id, { trigger_type: 'webhook' })
const list = `/api/projects/${project.id}/agents/${agent.id}/hooks`

const create = (name: string, headers = {}) => kit.call<NewHook>(`POST ${list}`, { body: { name }, headers })
const rotate = (path: string, headers = {}) => kit.call<NewHook>(`POST ${path}/rotate`, { headers })

async function audited(hookId: string): Promise<unknown[]> {
  const { rows } = await kit.pool.query(
    'select action, actor_type, target_type, details from audit_log where target_id = $1 order by seq',
    [hookId],
  )
  return rows
}

/** The status of a delivery that is signed by the clock of the database. */
async function deliver(hook: { id: string }, secret: string, advancedMs = 0): Promise<number> {
  const payload = '{"a":1}'
  const headers = signDelivery(secret, payload, { atMs: Date.now() + advancedMs })
  const answer = await kit.app.inject({ method: 'POST', url: `/hooks/${hook.id}`, headers, payload })
  return answer.statusCode
}

test('a hook has an address, and a secret of 32 bytes that is shown once', async () => {
  const { status, body } = await create('orders')
  assert.equal(status, 201)
  const { id, created_at, secret, ...rest } = body
  assert.ok(created_at)
  assert.deepEqual(rest, {
    name: 'orders',
    url: `https://muster.example.com/hooks/${id}`,
    last_used_at: null,
    old_secret_until: null,
  })
  assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
  assert.equal(Buffer.from(secret.slice(6), 'base64').length, 32)
  const { secret: _, ...shown } = body
  const page = await kit.call<List>(`GET ${list}`)
  assert.deepEqual(
    page.body.items.find((item) => item.id === id),
    shown,
  )
  assert.ok(!page.text.includes(secret.slice(6, 30)))
  assert.deepEqual(await audited(id), [
    {
      action: 'hook.create',
      actor_type: 'instance_admin',
      target_type: 'hook',
      details: { agent_id: agent.id, name: 'orders' },
    },
  ])
})

test('secrets are in no row of the database, in no form', async () => {
  const { body } = await create('dumped', { 'idempotency-key': 'dumped' })
  const rotated = await rotate(`${list}/${body.id}`, { 'idempotency-key': 'rotated' })
  const dump = JSON.stringify(await dumpRows(kit.pool))
  assert.ok(dump.includes(body.id))
  for (const secret of [body.secret, rotated.body.secret]) {
    const plain = secret.slice('whsec_'.length)
    const bytes = Buffer.from(plain, 'base64')
    const forms = [plain, bytes.toString('hex'), bytes.toString('base64url'), Buffer.from(secret).toString('hex')]
    for (const form of forms) assert.ok(!dump.includes(form))
  }
})

test('a sealed secret opens nothing on another hook, nor in another project', async () => {
  const [from, beside] = [(await create('from')).body, (await create('beside')).body]
  const elsewhere = await createHook(kit, (await kit.createProject()).id)
  for (const to of [beside, elsewhere]) {
    await kit.pool.query(
      'update hooks set sealed_secret = (select sealed_secret from hooks where id = $1) where id = $2',
      [from.id, to.id],
    )
    assert.equal(await deliver(to, from.secret), 500)
  }
  assert.equal(await deliver(from, from.secret), 202)
})

test('a secret is masked in logs, also in an address', () => {
  const { scrub } = createRedactor()
  const secret = `whsec_${Buffer.from('?>?>?>?>?>?>?>?>?>?>?>?>?>?>?>?>').toString('base64')}`
  assert.match(secret, /[+/]/)
  for (const form of [secret, encodeURIComponent(secret)]) {
    assert.equal(scrub(`/hooks?s=${form} came`), '/hooks?s=[redacted] came')
  }
})

test('the same Idempotency-Key makes one hook, and shows its secret again', async () => {
  const headers = { 'idempotency-key': 'once' }
  const first = await create('once', headers)
  const again = await create('once', headers)
  assert.equal(again.text, first.text)
  assert.equal(again.headers['idempotency-replayed'], 'true')
  assert.equal((await audited(first.body.id)).length, 1)
})

test('the hooks of an agent are listed newest first, a page at a time', async () => {
  const own = await kit.createAgent(project.id, { trigger_type: 'webhook' })
  const path = `/api/projects/${project.id}/agents/${own.id}/hooks`
  for (const name of ['1', '2', '3']) await kit.call(`POST ${path}`, { body: { name } })
  const first = (await kit.call<List>(`GET ${path}?limit=2`)).body
  const second = (await kit.call<List>(`GET ${path}?limit=2&cursor=${first.next_cursor}`)).body
  assert.deepEqual(
    [...first.items, ...second.items].map(({ name }) => name),
    ['3', '2', '1'],
  )
  assert.equal(second.next_cursor, null)
})

test('after a rotation both secrets hold for 24 hours, then only the new one', async () => {
  const hook = await createHook(kit, project.id)
  const rotated = await rotate(hook.path)
  assert.equal(rotated.status, 200)
  assert.equal(rotated.body.url, hook.url)
  assert.notEqual(rotated.body.secret, hook.secret)
  const until = Date.parse(rotated.body.old_secret_until ?? '')
  assert.ok(Math.abs(until - Date.now() - 24 * HOUR_MS) < 60_000, rotated.body.old_secret_until ?? '')
  assert.equal(await deliver(hook, hook.secret), 202)
  assert.equal(await deliver(hook, rotated.body.secret), 202)

  let advancedMs = 24 * HOUR_MS - 60_000
  await kit.clock.advance(advancedMs)
  assert.equal(await deliver(hook, hook.secret, advancedMs), 202)
  await kit.clock.advance(60_000)
  advancedMs += 60_000
  assert.equal(await deliver(hook, hook.secret, advancedMs), 401)
  assert.equal(await deliver(hook, rotated.body.secret, advancedMs), 202)
  const [listed] = (await kit.call<List>(`GET ${hook.path.replace(/\/[^/]+$/, '')}`)).body.items
  assert.equal(listed?.old_secret_until, null)
  await kit.clock.advance(-advancedMs)
})

test('after a second rotation every secret holds as long as it was promised', async () => {
  const hook = await createHook(kit, project.id)
  const second = (await rotate(hook.path)).body.secret
  const third = (await rotate(hook.path)).body.secret
  assert.deepEqual(
    [await deliver(hook, hook.secret), await deliver(hook, second), await deliver(hook, third)],
    [202, 202, 202],
  )
  const actions = (await audited(hook.id)).map((entry) => (entry as { action: string }).action)
  assert.deepEqual(actions, ['hook.create', 'hook.rotate', 'hook.rotate'])
})

test('a rotation repeated under its Idempotency-Key rotates once', async () => {
  const hook = await createHook(kit, project.id)
  const headers = { 'idempotency-key': 'rotate' }
  const first = await rotate(hook.path, headers)
  const again = await rotate(hook.path, headers)
  assert.equal(again.text, first.text)
  assert.equal(again.headers['idempotency-replayed'], 'true')
  assert.equal(await deliver(hook, hook.secret), 202)
})

test('a deleted hook is 404 for senders and for a second deletion, and not in the list', async () => {
  const hook = await createHook(kit, project.id)
  assert.equal(await deliver(hook, hook.secret), 202)
  assert.equal((await kit.call(`DELETE ${hook.path}`)).status, 204)
  assert.equal(await deliver(hook, hook.secret), 404)
  assert.equal((await kit.call(`DELETE ${hook.path}`)).status, 404)
  assert.equal((await rotate(hook.path)).status, 404)
  const actions = (await audited(hook.id)).map((entry) => (entry as { action: string }).action)
  assert.deepEqual(actions, ['hook.create', 'hook.delete'])
})

for (const trigger of [
  { trigger_type: 'manual' },
  { trigger_type: 'reaction', reaction_config: { objectTypes: ['*'], events: ['created'] } },
] as const) {
  test(`an agent with trigger_type ${trigger.trigger_type} gets no hook and rotates none`, async () => {
    const hook = await createHook(kit, project.id)
    const path = hook.path.replace(/\/[^/]+$/, '')
    const changed = await kit.call(`PATCH ${path.replace(/\/hooks$/, '')}`, { body: trigger })
    assert.equal(changed.status, 200, changed.text)
    const dump = await dumpRows(kit.pool)
    for (const answer of [await kit.call(`POST ${path}`, { body: { name: 'x' } }), await rotate(hook.path)]) {
      assert.equal(answer.status, 409)
      assert.match(answer.text, /trigger_type webhook/)
    }
    assert.deepEqual(await dumpRows(kit.pool), dump)
    assert.equal((await kit.call<List>(`GET ${path}`)).body.items.length, 1)
    assert.equal((await kit.call(`DELETE ${hook.path}`)).status, 204)
  })
}

test('the hooks of a deleted agent are removed with it', async () => {
  const hook = await createHook(kit, project.id)
  const path = hook.path.replace(/\/[^/]+$/, '')
  assert.equal((await kit.call(`DELETE ${path.replace(/\/hooks$/, '')}`)).status, 204)
  assert.equal(await deliver(hook, hook.secret), 404)
  for (const route of [`GET ${path}`, `DELETE ${hook.path}`, `POST ${hook.path}/rotate`]) {
    assert.equal((await kit.call(route)).status, 404, route)
  }
  assert.equal((await kit.call(`POST ${path}`, { body: { name: 'x' } })).status, 404)
})

test('a hook is found only below its own agent and project', async () => {
  const hook = await createHook(kit, project.id)
  const other = await kit.createProject()
  const otherAgent = await kit.createAgent(other.id, { trigger_type: 'webhook' })
  for (const owner of [
    `${project.id}/agents/${agent.id}`,
    `${other.id}/agents/${otherAgent.id}`,
    `${other.id}/agents/${hook.agentId}`,
    `${project.id}/agents/${newId()}`,
  ]) {
    for (const route of [
      `DELETE /api/projects/${owner}/hooks/${hook.id}`,
      `POST /api/projects/${owner}/hooks/${hook.id}/rotate`,
    ]) {
      assert.equal((await kit.call(route)).status, 404, route)
    }
  }
  assert.equal((await kit.call(`GET /api/projects/${other.id}/agents/${hook.agentId}/hooks`)).status, 404)
  assert.equal(await deliver(hook, hook.secret), 202)
})
