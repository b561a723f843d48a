// POST /hooks/:hookId, as senders see it.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { ADMIN_TOKEN, createTestApp } from '../../../test/kit/app.ts'
import { dumpRows } from '../../../test/kit/database.ts'
import { createHook, type MadeHook, signDelivery } from '../../../test/kit/hooks.ts'
import { createScriptedModel } from '../../../test/kit/scripted-model.ts'
import { until } from '../../../test/kit/until.ts'
import { newId } from '../../kernel/id.ts'
import type { Run } from '../../kernel/run.ts'

const kit = await createTestApp()
const project = await kit.createProject()
const hook = await createHook(kit, project.id)

async function send(to: { id: string }, payload: string | Buffer | undefined, headers: Record<string, string>) {
  const answer = await kit.app.inject({
    method: 'POST',
    url: `/hooks/${to.id}`,
    headers,
    ...(payload === undefined ? {} : { payload }),
  })
  const body = answer.json<{ run_id: string; error?: { code: string; message: string } }>()
  return { status: answer.statusCode, body, headers: answer.headers, text: answer.body }
}

const deliver = (to: MadeHook, payload = '{"a":1}', options: Parameters<typeof signDelivery>[2] = {}) =>
  send(to, payload, signDelivery(to.secret, payload, options))

const json = { 'content-type': 'application/json' }
const bearing = (token: string, more = {}) => ({ ...json, authorization: `Bearer ${token}`, ...more })

const readRun = async (runId: string, projectId = project.id): Promise<Run> =>
  (await kit.call<Run>(`GET /api/projects/${projectId}/runs/${runId}`)).body

async function countRuns(of: MadeHook): Promise<number> {
  const { rows } = await kit.pool.query<{ count: number }>('select count(*) from agent_runs where agent_id = $1', [
    of.agentId,
  ])
  return rows[0]?.count ?? -1
}

/** Checks that the attempt is refused, and that no row differs afterwards. */
async function refuses(status: number, attempt: () => Promise<{ status: number; text: string }>): Promise<void> {
  const before = await dumpRows(kit.pool)
  const answer = await attempt()
  assert.equal(answer.status, status, answer.text)
  assert.deepEqual(await dumpRows(kit.pool), before)
}

test('a signed delivery starts a run with the body as its input', async () => {
  const before = kit.services.readyCount()
  const answer = await deliver(hook, '{"order":{"id":7}}', { id: 'msg_first' })
  assert.equal(answer.status, 202)
  assert.deepEqual(Object.keys(answer.body), ['run_id'])
  assert.equal(kit.services.readyCount(), before + 1)
  const run = await readRun(answer.body.run_id)
  assert.deepEqual(run.input, { order: { id: 7 } })
  assert.deepEqual(run.trigger, { type: 'webhook', hook_id: hook.id, webhook_id: 'msg_first' })
  assert.equal(run.agent_id, hook.agentId)
  const { body: agent } = await kit.call<{ name: string }>(`GET /api/projects/${project.id}/agents/${hook.agentId}`)
  const audit = await kit.call<{ items: unknown[] }>(`GET /api/projects/${project.id}/audit?limit=1`)
  const { id: _id, seq: _seq, at: _at, ...entry } = audit.body.items[0] as Record<string, unknown>
  assert.deepEqual(entry, {
    project_id: project.id,
    action: 'hook.deliver',
    actor: { type: 'hook', id: hook.id },
    actor_name: null,
    target: { type: 'run', id: run.id },
    target_name: agent.name,
    target_exists: true,
    details: { agent_id: hook.agentId, trigger: 'webhook', webhook_id: 'msg_first' },
    request_id: answer.headers['x-request-id'],
    address: '127.0.0.1',
  })
})

for (const payload of ['[1,[2]]', '"text"', '""', '42', '-0.5', 'null', 'true', '{}', ' {"ä":"🙂"}\n']) {
  test(`the body ${payload.trim()} becomes the input unchanged`, async () => {
    const { status, body } = await deliver(hook, payload)
    assert.equal(status, 202)
    assert.deepEqual((await readRun(body.run_id)).input, JSON.parse(payload))
  })
}

test('the same webhook sent 20 times at once: one run, one id in all answers', async () => {
  const own = await createHook(kit, project.id)
  const answers = await Promise.all(Array.from({ length: 20 }, () => deliver(own, '{"a":1}', { id: 'msg_same' })))
  assert.deepEqual([...new Set(answers.map(({ status }) => status))], [202])
  assert.equal(new Set(answers.map(({ body }) => body.run_id)).size, 1)
  assert.equal(await countRuns(own), 1)
  const later = await deliver(own, '{"another":"body"}', { id: 'msg_same' })
  assert.equal(later.body.run_id, answers[0]?.body.run_id)
  assert.equal(await countRuns(own), 1)
  const { rows } = await kit.pool.query('select from audit_log where action = $1 and actor_id = $2', [
    'hook.deliver',
    own.id,
  ])
  assert.equal(rows.length, 1)
})

test('another webhook-id, or the same id on another hook, is another delivery', async () => {
  const [one, two] = [await createHook(kit, project.id), await createHook(kit, project.id)]
  const answers = [
    await deliver(one, '1', { id: 'a' }),
    await deliver(one, '1', { id: 'A' }),
    await deliver(two, '1', { id: 'a' }),
  ]
  assert.equal(new Set(answers.map(({ body }) => body.run_id)).size, 3)
})

test('a delivery that was changed, is too old or too new, or has another signature is refused', async () => {
  const payload = '{"amount":10}'
  const right = signDelivery(hook.secret, payload)
  const other = await createHook(kit, project.id)
  const { 'webhook-signature': signature = '' } = right
  const cases: [string, string, Record<string, string>][] = [
    ['a byte of the body', '{"amount":90}', right],
    ['a byte of the id', payload, { ...right, 'webhook-id': `${right['webhook-id']?.slice(0, -1)}x` }],
    ['a byte of the time', payload, { ...right, 'webhook-timestamp': String(Number(right['webhook-timestamp']) + 1) }],
    ['old', payload, signDelivery(hook.secret, payload, { atMs: Date.now() - 330_000 })],
    ['future', payload, signDelivery(hook.secret, payload, { atMs: Date.now() + 330_000 })],
    ['v1a only', payload, { ...right, 'webhook-signature': signature.replace('v1,', 'v1a,') }],
    ['of another hook', payload, signDelivery(other.secret, payload)],
    ['a malformed id without a signature', payload, { ...right, 'webhook-id': 'a b' }],
    ...(['webhook-id', 'webhook-timestamp', 'webhook-signature'] as const).map(
      (name): [string, string, Record<string, string>] => {
        const { [name]: _, ...rest } = right
        return [`without ${name}`, payload, rest]
      },
    ),
    ['nothing at all', payload, json],
    ['not even JSON', 'nonsense', json],
  ]
  for (const [name, sent, headers] of cases) {
    await refuses(401, () => send(hook, sent, headers)).catch((error) => assert.fail(`${name}: ${error}`))
  }
  assert.equal((await send(hook, payload, right)).status, 202)
})

test('the secret as a bearer token opens the hook, and nothing else does', async () => {
  const { key } = await kit.createKey(project.id, 'admin')
  const first = await send(hook, '"x"', bearing(hook.secret))
  const second = await send(hook, '"x"', bearing(hook.secret))
  assert.deepEqual([first.status, second.status], [202, 202])
  assert.notEqual(first.body.run_id, second.body.run_id)
  assert.deepEqual((await readRun(first.body.run_id)).trigger, { type: 'webhook', hook_id: hook.id })
  const other = await createHook(kit, project.id)
  const wrong = `whsec_${randomBytes(32).toString('base64')}`
  // The use of a key that was looked up would be noted, and the rows would differ.
  for (const token of [wrong, other.secret, ADMIN_TOKEN, key]) {
    await refuses(401, () => send(hook, '"x"', bearing(token)))
  }
})

test('a webhook-id with a bearer token identifies a repetition', async () => {
  const headers = bearing(hook.secret, { 'webhook-id': 'simple' })
  const first = await send(hook, '1', headers)
  assert.equal((await send(hook, '2', headers)).body.run_id, first.body.run_id)
  assert.equal((await readRun(first.body.run_id)).trigger.webhook_id, 'simple')
  for (const id of ['', 'a b', 'x'.repeat(256), 'ä']) {
    await refuses(400, () => send(hook, '1', bearing(hook.secret, { 'webhook-id': id })))
  }
  assert.equal((await send(hook, '1', bearing(hook.secret, { 'webhook-id': 'x'.repeat(255) }))).status, 202)
})

test('a signed webhook-id that cannot be kept is 400', async () => {
  const payload = '{}'
  for (const id of ['a b', 'x'.repeat(256)]) {
    await refuses(400, () => send(hook, payload, signDelivery(hook.secret, payload, { id })))
  }
})

for (const [name, payload] of Object.entries({
  'no JSON': 'a=1',
  nothing: '',
  'half of JSON': '{"a":',
  'a NUL': '"\\u0000"',
  'a lone surrogate': '"\\ud800"',
  'a property twice': '{"a":1,"a":2}',
  '65 levels': `${'['.repeat(65)}${']'.repeat(65)}`,
  'a number beyond a double': '1e999',
})) {
  test(`a body that is ${name} is 400 once the signature holds`, async () => {
    await refuses(400, () => deliver(hook, payload))
    await refuses(401, () => send(hook, payload, { ...json, authorization: 'Bearer x' }))
  })
}

test('bytes that are no UTF-8 are 400', async () => {
  await refuses(400, () => send(hook, Buffer.from([0x22, 0xff, 0x22]), bearing(hook.secret)))
})

test('2 MB are 413, another media type or encoding 415', async () => {
  const large = JSON.stringify('x'.repeat(2_000_000))
  await refuses(413, () => send(hook, large, bearing(hook.secret)))
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/json; charset=utf-16']) {
    await refuses(415, () => send(hook, '{}', bearing(hook.secret, { 'content-type': type })))
  }
  await refuses(415, () => send(hook, '{}', bearing(hook.secret, { 'content-encoding': 'gzip' })))
  const utf8 = bearing(hook.secret, { 'content-type': 'application/json; charset=utf-8' })
  assert.equal((await send(hook, '{}', utf8)).status, 202)
})

test('a body of 1 MiB is accepted', async () => {
  const payload = JSON.stringify('x'.repeat(1_048_576 - 2))
  assert.equal((await deliver(hook, payload)).status, 202)
})

test('an address without a hook is 404 for every request', async () => {
  for (const id of [newId(), 'nothing', '%00', `${hook.id}x`]) {
    await refuses(404, () => send({ id }, '{}', signDelivery(hook.secret, '{}')))
    await refuses(404, () => send({ id }, 'x', { 'content-type': 'text/plain' }))
  }
  const answer = await kit.app.inject({ method: 'GET', url: `/hooks/${hook.id}` })
  assert.equal(answer.statusCode, 405)
})

test('an address in capitals is the same hook', async () => {
  const shouted = { id: hook.id.toUpperCase() }
  assert.equal((await send(shouted, '{}', signDelivery(hook.secret, '{}'))).status, 202)
})

test('a disabled agent, or one with another trigger, is 409 to proved senders; accepted deliveries stay accepted', async () => {
  const own = await createHook(kit, project.id)
  const taken = await deliver(own, '{}', { id: 'msg_known' })
  assert.equal(taken.status, 202)
  const path = `PATCH /api/projects/${project.id}/agents/${own.agentId}`
  for (const [closed, open] of [
    [{ enabled: false }, { enabled: true }],
    [{ trigger_type: 'manual' }, { trigger_type: 'webhook' }],
  ]) {
    await kit.call(path, { body: closed })
    await refuses(409, () => deliver(own, '{}'))
    for (const body of ['{}', '{"other":1}', 'no JSON']) {
      assert.deepEqual((await deliver(own, body, { id: 'msg_known' })).body, taken.body)
    }
    await refuses(409, () => deliver(own, 'no JSON'))
    await refuses(409, () => send(own, '{}', bearing(own.secret)))
    await refuses(401, () => send(own, '{}', bearing('wrong')))
    await kit.call(path, { body: open })
    assert.equal((await deliver(own, '{}')).status, 202)
  }
})

test('a refused delivery does not use up its webhook-id', async () => {
  const own = await createHook(kit, project.id)
  const path = `PATCH /api/projects/${project.id}/agents/${own.agentId}`
  await kit.call(path, { body: { enabled: false } })
  assert.equal((await deliver(own, '{}', { id: 'msg_later' })).status, 409)
  await kit.call(path, { body: { enabled: true } })
  const { status, body } = await deliver(own, '{"now":true}', { id: 'msg_later' })
  assert.equal(status, 202)
  assert.deepEqual((await readRun(body.run_id)).input, { now: true })
})

test('the last use of a hook is noted once a minute', async () => {
  const own = await createHook(kit, project.id)
  const lastUsed = async (): Promise<Date | null> => {
    const { rows } = await kit.pool.query<{ at: Date | null }>('select last_used_at as at from hooks where id = $1', [
      own.id,
    ])
    return rows[0]?.at ?? null
  }
  await send(own, '{}', bearing('wrong'))
  assert.equal(await lastUsed(), null)
  await deliver(own, '{}', { id: 'used' })
  const first = await lastUsed()
  assert.ok(first)
  await deliver(own)
  assert.deepEqual(await lastUsed(), first)
  await kit.clock.advance(61_000)
  await deliver(own, '{}', { id: 'used', atMs: Date.now() + 61_000 })
  const second = await lastUsed()
  assert.ok(second !== null && second.getTime() - first.getTime() >= 60_000)
  await kit.clock.advance(-61_000)
})

const model = createScriptedModel(() => ({ text: 'done' }))
const running = await createTestApp({ models: new Map([['script', model]]) })

async function deliverAndRun(own: MadeHook, payload: string): Promise<string> {
  const headers = signDelivery(own.secret, payload)
  const answer = await running.app.inject({ method: 'POST', url: `/hooks/${own.id}`, headers, payload })
  assert.equal(answer.statusCode, 202)
  return `/api/projects/${own.projectId}/runs/${answer.json<{ run_id: string }>().run_id}`
}

test('the model of a delivery’s run sees the body', async () => {
  const own = await createHook(running, (await running.createProject()).id)
  const path = await deliverAndRun(own, '{"hello":"there"}')
  // The stream ends with the run.
  assert.match((await running.call(`GET ${path}/events`)).text, /run\.completed/)
  assert.equal((await running.call<Run>(`GET ${path}`)).body.summary, 'done')
  assert.match(JSON.stringify(model.requests.at(-1)?.prompt), /hello.*there/)
})

test('a halted project accepts deliveries; their runs wait and go on after the release', async () => {
  const { id } = await running.createProject()
  const own = await createHook(running, id)
  await running.call(`POST /api/projects/${id}/halt`)
  const asked = model.requests.length
  const path = await deliverAndRun(own, '"later"')
  const read = async (): Promise<Run> => (await running.call<Run>(`GET ${path}`)).body
  await until(async () => (await read()).pause_reason === 'halted', 'the run waits')
  assert.equal(model.requests.length, asked)
  await running.call(`POST /api/projects/${id}/unhalt`)
  assert.match((await running.call(`GET ${path}/events`)).text, /run\.completed/)
  assert.equal((await read()).status, 'completed')
})
