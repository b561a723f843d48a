// The prompt library over HTTP, and agents with prompts of the library.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Answer, createTestApp } from '../../../test/kit/app.ts'
import { serveLocally } from '../../../test/kit/local-server.ts'
import { signInByLink } from '../../../test/kit/people.ts'
import { createScriptedModel } from '../../../test/kit/scripted-model.ts'
import { newId } from '../../kernel/id.ts'
import type { ListedPrompt, Prompt, PromptDiff, PromptMessage, PromptVersion } from '../../kernel/prompt.ts'
import { requiredPrompts } from '../../kernel/prompt.ts'
import type { Run } from '../../kernel/run.ts'

const model = createScriptedModel(() => ({ text: 'done' }))
const models = new Map([['script', model]])
const kit = await createTestApp({ models, firstBackoffMs: 1 })

const variantPath = (projectId: string, promptId = 'supervisor_planner', variantId = 'blue') =>
  `/api/projects/${projectId}/prompts/${promptId}/variants/${variantId}`
const messages = (...contents: string[]): PromptMessage[] =>
  contents.map((content, place) => ({ role: place === 0 ? 'system' : 'user', content }))
const codeOf = ({ body }: Answer<unknown>) => (body as { error?: { code?: string } }).error?.code // asserted by the caller
const fetchPrompt = (headers: Record<string, string>, prompt_id = 'supervisor_planner', variant_id = 'blue') =>
  kit.call('POST /v1/prompts/get', { headers, body: { prompt_id, variant_id } })
const put = (path: string, contents: string[], more = {}) =>
  kit.call<Prompt>(`PUT ${path}`, { body: { messages: messages(...contents), ...more } })

test('a new project has every required prompt in blue and green', async () => {
  const { id } = await kit.createProject()
  const list = await kit.call<{ items: ListedPrompt[]; next_cursor: string | null }>(`GET /api/projects/${id}/prompts`)
  assert.equal(list.status, 200, list.text)
  assert.deepEqual(
    list.body.items.map(({ prompt_id, variant_id, seeded, required, version }) => ({
      prompt_id,
      variant_id,
      seeded,
      required,
      version,
    })),
    requiredPrompts
      .toSorted()
      .flatMap((prompt_id) =>
        ['blue', 'green'].map((variant_id) => ({ prompt_id, variant_id, seeded: true, required: true, version: 1 })),
      ),
  )
  assert.equal(list.body.next_cursor, null)
})

test('the list says who wrote the newest version, and has deleted prompts on demand', async () => {
  const { id } = await kit.createProject()
  const { key } = await kit.createKey(id, 'admin', 'Editor key')
  const person = await signInByLink(kit, { member: { projectId: id, role: 'admin' } })
  const body = { messages: messages('Work.') }
  const saved = await kit.call<Prompt & { actor_name: string | null }>(`PUT ${variantPath(id, 'mine')}`, {
    body,
    token: key,
  })
  assert.deepEqual([saved.status, saved.body.actor_name], [200, 'Editor key'], saved.text)
  const removed = await kit.call(`DELETE ${variantPath(id, 'mine')}`, { token: null, cookie: person.cookie })
  assert.equal(removed.status, 204, removed.text)
  type Listed = { items: (ListedPrompt & { actor_name: string | null })[] }
  const list = async (query: string) => {
    const { items } = (await kit.call<Listed>(`GET /api/projects/${id}/prompts?limit=200${query}`)).body
    return items.filter(({ prompt_id }) => prompt_id === 'mine')
  }
  assert.deepEqual(await list(''), [])
  assert.deepEqual(await list('&include_deleted=false'), [])
  const [shown, ...others] = await list('&include_deleted=true')
  assert.equal(others.length, 0)
  assert.deepEqual([shown?.version, shown?.deleted, shown?.actor_name], [2, true, person.email])
  const versions = await kit.call<Listed>(`GET ${variantPath(id, 'mine')}/versions`)
  assert.deepEqual(
    versions.body.items.map(({ actor_name }) => actor_name),
    [person.email, 'Editor key'],
  )
  assert.equal((await kit.call(`GET /api/projects/${id}/prompts?include_deleted=yes`)).status, 400)
})

test('POST /v1/prompts/get answers as the spec says, and nothing more', async () => {
  const { id } = await kit.createProject()
  await put(variantPath(id), ['...', 'User: {{USER_INPUT}}'])
  const { key } = await kit.createKey(id, 'viewer')
  const answer = await kit.call('POST /v1/prompts/get', {
    token: key,
    body: { prompt_id: 'supervisor_planner', variant_id: 'blue' },
  })
  assert.equal(answer.status, 200, answer.text)
  assert.deepEqual(answer.body, {
    prompt: {
      id: 'supervisor_planner',
      variant: {
        id: 'blue',
        messages: [
          { role: 'system', content: '...' },
          { role: 'user', content: 'User: {{USER_INPUT}}' },
        ],
      },
    },
  })
})

test('the project of /v1 is that of the key; the instance admin and people name it in a header', async () => {
  const [mine, theirs] = [await kit.createProject(), await kit.createProject()]
  await put(variantPath(mine.id), ['mine'])
  await put(variantPath(theirs.id), ['theirs'])
  const { key } = await kit.createKey(mine.id, 'viewer')
  const { cookie } = await signInByLink(kit, { instanceAdmin: true })
  const stranger = await signInByLink(kit)
  const body = { prompt_id: 'supervisor_planner', variant_id: 'blue' }
  const ask = (credentials: { token?: string | null; cookie?: string }, project?: string) =>
    kit.call('POST /v1/prompts/get', {
      ...credentials,
      body,
      ...(project ? { headers: { 'x-project-id': project } } : {}),
    })
  const cases: [answer: Promise<Answer>, status: number, holds: RegExp][] = [
    [ask({ token: key }), 200, /"mine"/],
    [ask({ token: key }, mine.id), 200, /"mine"/],
    [ask({ token: key }, mine.id.toUpperCase()), 200, /"mine"/],
    [ask({ token: key }, theirs.id), 404, /NOT_FOUND.*project/],
    [ask({ token: key }, newId()), 404, /NOT_FOUND.*project/],
    [ask({}, theirs.id), 200, /"theirs"/],
    [ask({}), 400, /x-project-id/],
    [ask({}, 'no-id'), 400, /x-project-id/],
    [ask({}, `${mine.id}, ${theirs.id}`), 400, /x-project-id/],
    [ask({}, newId()), 404, /NOT_FOUND.*project/],
    [ask({ cookie }, theirs.id), 200, /"theirs"/],
    [ask({ cookie }), 400, /x-project-id/],
    [ask({ cookie: stranger.cookie }, theirs.id), 404, /NOT_FOUND.*project/],
    [ask({ token: null }, mine.id), 401, /UNAUTHENTICATED/],
  ]
  for (const [answer, status, holds] of cases) {
    const { status: answered, text } = await answer
    assert.equal(answered, status, text)
    assert.match(text, holds)
  }
})

test('a missing prompt is PROMPT_MISSING with its name on every route', async () => {
  const { id } = await kit.createProject()
  const names = [
    ['unknown', 'blue'],
    ['supervisor_planner', 'red'],
    ['not a name', 'blue'],
    ['Supervisor_Planner', 'blue'],
  ]
  for (const [promptId = '', variantId = ''] of names) {
    const path = variantPath(id, encodeURIComponent(promptId), variantId)
    const answers = [
      await fetchPrompt({ 'x-project-id': id }, promptId, variantId),
      await kit.call(`GET ${path}`),
      await kit.call(`DELETE ${path}`),
      await kit.call(`GET ${path}/versions`),
      await kit.call(`GET ${path}/diff`),
      await kit.call(`POST ${path}/rollback`, { body: { version: 1 } }),
    ]
    for (const answer of answers) {
      assert.deepEqual([answer.status, codeOf(answer)], [404, 'PROMPT_MISSING'], answer.text)
      assert.ok(answer.text.includes(promptId) && answer.text.includes(variantId), answer.text)
    }
  }
})

test('versions, differences and rollbacks of a prompt that people edit', async () => {
  const { id } = await kit.createProject()
  const path = variantPath(id, 'greeting', 'blue')
  const first = await put(path, ['Be kind.\nBe short.', 'User: {{USER_INPUT}} {{NMAE}}'])
  assert.equal(first.status, 200, first.text)
  assert.deepEqual([first.body.version, first.body.unknown_variables], [1, ['NMAE']])
  const second = await put(path, ['Be kind.\nBe long.', 'User: {{USER_INPUT}}'])
  assert.equal(second.body.version, 2)

  const read = await kit.call<Prompt>(`GET ${path}`)
  assert.deepEqual(read.body, second.body)
  const diff = await kit.call<PromptDiff>(`GET ${path}/diff?from=1&to=2`)
  assert.equal(diff.status, 200, diff.text)
  assert.deepEqual(diff.body.parts, [
    { op: 'same', text: '[system]\nBe kind.' },
    { op: 'removed', text: 'Be short.' },
    { op: 'added', text: 'Be long.' },
    { op: 'same', text: '\n[user]' },
    { op: 'removed', text: 'User: {{USER_INPUT}} {{NMAE}}' },
    { op: 'added', text: 'User: {{USER_INPUT}}' },
  ])
  assert.deepEqual((await kit.call(`GET ${path}/diff`)).body, diff.body, 'the last change by default')

  const back = await kit.call<Prompt>(`POST ${path}/rollback`, { body: { version: 1 } })
  assert.deepEqual([back.status, back.body.version, back.body.messages], [200, 3, first.body.messages])
  assert.equal((await kit.call(`DELETE ${path}`)).status, 204)
  assert.equal((await kit.call(`GET ${path}`)).status, 404)
  const versions = await kit.call<{ items: PromptVersion[] }>(`GET ${path}/versions`)
  assert.deepEqual(
    versions.body.items.map(({ version, messages, rolled_back_to }) => [version, messages === null, rolled_back_to]),
    [
      [4, true, null],
      [3, false, 1],
      [2, false, null],
      [1, false, null],
    ],
  )
  const page = await kit.call<{ items: PromptVersion[]; next_cursor: string }>(`GET ${path}/versions?limit=3`)
  const rest = await kit.call<{ items: PromptVersion[] }>(
    `GET ${path}/versions?limit=3&cursor=${page.body.next_cursor}`,
  )
  assert.deepEqual([...page.body.items, ...rest.body.items], versions.body.items)
})

test('a rollback with an Idempotency-Key happens once', async () => {
  const { id } = await kit.createProject()
  const path = variantPath(id)
  await put(path, ['two'])
  const request = { body: { version: 1 }, headers: { 'idempotency-key': 'once' } }
  const first = await kit.call<Prompt>(`POST ${path}/rollback`, request)
  assert.equal(first.body.version, 3)
  assert.deepEqual((await kit.call(`POST ${path}/rollback`, request)).body, first.body)
  assert.equal((await kit.call<Prompt>(`GET ${path}`)).body.version, 3)
})

test('a PUT with an Idempotency-Key saves one version', async () => {
  const { id } = await kit.createProject()
  const path = variantPath(id)
  const request = { body: { messages: [{ role: 'user', content: 'x' }] }, headers: { 'idempotency-key': 'once' } }
  const first = await kit.call<Prompt>(`PUT ${path}`, request)
  assert.equal(first.body.version, 2)
  assert.deepEqual((await kit.call(`PUT ${path}`, request)).body, first.body)
  assert.equal((await kit.call<Prompt>(`GET ${path}`)).body.version, 2)
  const other = { ...request, body: { messages: [{ role: 'user', content: 'y' }] } }
  assert.equal((await kit.call(`PUT ${path}`, other)).status, 409)
})

const refused: { name: string; method?: string; path?: string; body: unknown; status: number; says: RegExp }[] = [
  { name: 'no messages', body: { messages: [] }, status: 400, says: /body\.messages/ },
  { name: 'an unknown role', body: { messages: [{ role: 'tool', content: 'x' }] }, status: 400, says: /role/ },
  { name: 'an empty message', body: { messages: [{ role: 'user', content: '' }] }, status: 400, says: /content/ },
  {
    name: 'a content that is no text',
    body: { messages: [{ role: 'user', content: 1 }] },
    status: 400,
    says: /content/,
  },
  {
    name: 'an unknown field of a message',
    body: { messages: [{ role: 'user', content: 'x', name: 'y' }] },
    status: 400,
    says: /name/,
  },
  {
    name: 'a stale version',
    body: { messages: messages('x'), expected_version: 7 },
    status: 409,
    says: /at version 1/,
  },
  {
    name: 'a bad name',
    path: '/prompts/a%20b/variants/blue',
    body: { messages: messages('x') },
    status: 400,
    says: /names of/,
  },
  {
    name: 'a bad variant',
    path: '/prompts/a/variants/%00',
    body: { messages: messages('x') },
    status: 400,
    says: /names of/,
  },
  { name: 'version 0', method: 'POST', path: '/rollback', body: { version: 0 }, status: 400, says: /version/ },
  {
    name: 'a version as text',
    method: 'POST',
    path: '/rollback',
    body: { version: '1' },
    status: 400,
    says: /version/,
  },
  {
    name: 'a version that is not there',
    method: 'POST',
    path: '/rollback',
    body: { version: 9 },
    status: 404,
    says: /version/,
  },
]

for (const { name, method = 'PUT', path = '', body, status, says } of refused) {
  test(`a change is refused, and nothing changes: ${name}`, async () => {
    const { id } = await kit.createProject()
    const address = path.startsWith('/prompts') ? `/api/projects/${id}${path}` : `${variantPath(id)}${path}`
    const answer = await kit.call(`${method} ${address}`, { body })
    assert.equal(answer.status, status, answer.text)
    assert.match(answer.text, says)
    assert.equal((await kit.call<Prompt>(`GET ${variantPath(id)}`)).body.version, 1)
    const { rowCount } = await kit.pool.query('select from prompt_variants where project_id = $1', [id])
    assert.equal(rowCount, 0)
  })
}

test('malformed or missing versions to compare are refused', async () => {
  const path = variantPath((await kit.createProject()).id)
  for (const query of ['from=x', 'to=0', 'from=-1', 'to=1.5', 'from=', 'from=1&from=1']) {
    assert.equal((await kit.call(`GET ${path}/diff?${query}`)).status, 400, query)
  }
  assert.equal((await kit.call(`GET ${path}/diff?from=1&to=2`)).status, 404)
  assert.equal((await kit.call(`GET ${path}/diff?from=1&to=999999999`)).status, 404)
})

test('the largest prompt that a body holds is saved, compared and read', async () => {
  const path = variantPath((await kit.createProject()).id, 'large')
  const sent = (sign: string) => Array.from({ length: 5 }, (_, i) => `${i}\n${sign}\n`.repeat(20_000))
  assert.equal((await put(path, sent('x'))).status, 200)
  assert.equal((await put(path, sent('y'))).status, 200)
  const diff = await kit.call<PromptDiff>(`GET ${path}/diff`)
  assert.deepEqual([diff.status, diff.body.exact], [200, false])
  assert.equal((await kit.call<Prompt>(`GET ${path}`)).body.messages.length, 5)
})

test('the prompts of a deleted project are removed', async () => {
  const { id } = await kit.createProject()
  await put(variantPath(id), ['x'])
  await kit.call(`DELETE /api/projects/${id}`)
  assert.equal((await kit.call(`GET ${variantPath(id)}`)).status, 404)
  assert.equal(codeOf(await fetchPrompt({ 'x-project-id': id })), 'NOT_FOUND')
})

const shown = (): string[] =>
  (model.requests.at(-1)?.prompt ?? []).map(({ role, content }) => {
    const text = typeof content === 'string' ? content : content.map((part) => ('text' in part ? part.text : '')).join()
    return `${role}: ${text}`
  })

test('an agent with a prompt_id works with the messages of blue, in their state at each run', async () => {
  const { id } = await kit.createProject()
  const path = variantPath(id, 'greeter')
  const agent = await kit.createAgent(id, { prompt_id: 'greeter' })
  const trigger = () => kit.call<Run>(`POST /api/projects/${id}/agents/${agent.id}/trigger`, { body: { input: 'Hi' } })

  const missing = await trigger()
  assert.deepEqual([missing.status, missing.body.status, missing.body.error_code], [200, 'failed', 'PROMPT_MISSING'])
  assert.match(missing.body.error_message ?? '', /"greeter" in the variant "blue"/)

  await put(path, ['Be kind.', 'User: {{USER_INPUT}}'])
  assert.equal((await trigger()).body.status, 'completed')
  assert.deepEqual(shown(), ['system: Be kind.', 'user: User: Hi'])

  await put(path, ['Be short.', 'User: {{USER_INPUT}}'])
  await trigger()
  assert.equal(shown()[0], 'system: Be short.')

  await kit.call(`POST ${path}/rollback`, { body: { version: 1 } })
  await trigger()
  assert.equal(shown()[0], 'system: Be kind.')

  await kit.call(`DELETE ${path}`)
  assert.equal((await trigger()).body.error_code, 'PROMPT_MISSING')
})

test('a change holds in the process that made it as soon as it is answered, without a notice', async () => {
  const deaf = await createTestApp()
  const { id } = await deaf.createProject()
  const path = variantPath(id, 'own')
  const read = async () => (await deaf.services.library.get(id, 'own', 'blue')).messages[0]?.content
  for (const text of ['one', 'two']) {
    await deaf.call(`PUT ${path}`, { body: { messages: messages(text) } })
    assert.equal(await read(), text)
  }
  await deaf.call(`POST ${path}/rollback`, { body: { version: 1 } })
  assert.equal(await read(), 'one')
  await deaf.call(`DELETE ${path}`)
  await assert.rejects(read(), { code: 'PROMPT_MISSING' })
})

test('an agent may use a prompt that came with Muster, as its own project has it', async () => {
  const [mine, theirs] = [await kit.createProject(), await kit.createProject()]
  await put(variantPath(theirs.id, 'research_agent'), ['theirs'])
  const agent = await kit.createAgent(mine.id, { prompt_id: 'research_agent' })
  const run = await kit.call<Run>(`POST /api/projects/${mine.id}/agents/${agent.id}/trigger`, {
    body: { input: 'Why?' },
  })
  assert.equal(run.body.status, 'completed', run.text)
  assert.match(shown()[0] ?? '', /^system: You are a researcher\./)
  assert.match(shown()[1] ?? '', /^user: Your task:\nWhy\?/)
})

test('SYSTEM_VARIANT chooses the variant of agents', async () => {
  const green = await createTestApp({ models, systemVariant: 'green' })
  const { id } = await green.createProject()
  const body = { messages: messages('in green') }
  await green.call(`PUT ${variantPath(id, 'own', 'green')}`, { body })
  const [agent, other] = [
    await green.createAgent(id, { prompt_id: 'own' }),
    await green.createAgent(id, { prompt_id: 'other' }),
  ]
  const run = await green.call<Run>(`POST /api/projects/${id}/agents/${agent.id}/trigger`, { body: { input: 'x' } })
  assert.equal(run.body.status, 'completed', run.text)
  assert.equal(shown()[0], 'system: in green')
  const failed = await green.call<Run>(`POST /api/projects/${id}/agents/${other.id}/trigger`, { body: { input: 'x' } })
  assert.match(failed.body.error_message ?? '', /"other" in the variant "green"/)
})

test('a process with a remote library asks it at each run, and its runs wait while the library is down', async (t) => {
  const { id: projectId } = await kit.createProject()
  await put(variantPath(projectId, 'own'), ['from elsewhere', '{{USER_INPUT}}'])
  let isUp = true
  const { key } = await kit.createKey(projectId, 'viewer')
  // The remote service is another app of ours, behind a real HTTP server. Its projects are in a database of their own.
  const url = await serveLocally(t, async (request, response) => {
    if (!isUp) return response.destroy()
    const payload = Buffer.concat(await request.toArray())
    const { authorization = '', 'x-project-id': project } = request.headers
    const headers = { authorization, 'x-project-id': String(project), 'content-type': 'application/json' }
    const answer = await kit.app.inject({ method: 'POST', url: request.url ?? '', headers, payload })
    return response.writeHead(answer.statusCode).end(answer.body)
  })
  const remote = await createTestApp({ models, library: { url: new URL(url), key }, firstBackoffMs: 1 })
  await remote.pool.query(`insert into projects (id, name) values ($1, 'The same')`, [projectId])
  const id = projectId
  const agent = await remote.createAgent(id, { prompt_id: 'own' })
  const missing = await remote.createAgent(id, { prompt_id: 'no_such' })
  const trigger = async (agentId = agent.id) =>
    (await remote.call<Run>(`POST /api/projects/${id}/agents/${agentId}/trigger`, { body: { input: 'Hi' } })).body

  assert.equal((await trigger()).status, 'completed')
  assert.deepEqual(shown(), ['system: from elsewhere', 'user: Hi'])
  await put(variantPath(projectId, 'own'), ['changed', '{{USER_INPUT}}'])
  await trigger()
  assert.equal(shown()[0], 'system: changed')
  assert.equal((await trigger(missing.id)).error_code, 'PROMPT_MISSING')

  isUp = false
  const paused = await trigger()
  assert.deepEqual([paused.status, paused.pause_reason, paused.error_code], ['paused', 'unavailable', 'UNAVAILABLE'])
  assert.match(paused.error_message ?? '', /prompt library at http:\/\/127\.0\.0\.1:\d+ cannot be reached/)
  isUp = true
  const resumed = await remote.call<Run>(`POST /api/projects/${id}/runs/${paused.id}/resume`, { body: {} })
  assert.equal(resumed.body.status, 'completed', resumed.text)
})
