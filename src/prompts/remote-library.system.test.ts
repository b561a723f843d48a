import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import { after, type TestContext, test } from 'node:test'
import { serveLocally } from '../../test/kit/local-server.ts'
import { createEgress } from '../egress/egress.ts'
import { MusterError } from '../kernel/errors.ts'
import { newId } from '../kernel/id.ts'
import { createRemoteLibrary } from './remote-library.ts'

const egress = createEgress({ allow: [] })
after(() => egress.close())
const projectId = newId()
const messages = [{ role: 'user', content: 'User: {{USER_INPUT}}' }]
const answer = { prompt: { id: 'planner', variant: { id: 'blue', messages } } }

const libraryAt = (url: string, key: string | null = 'a-key') =>
  createRemoteLibrary({ url: new URL(url), key, fetch: egress.fetch('trusted'), timeoutMs: 500 })

const send = (response: ServerResponse, status: number, body: unknown, headers = {}): void =>
  void response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))

async function ask(t: TestContext, serve: (request: IncomingMessage, response: ServerResponse) => unknown, path = '') {
  return libraryAt(`${await serveLocally(t, serve)}${path}`).get(projectId, 'planner', 'blue')
}

const isUnavailable = (message: RegExp) => (error: unknown) => {
  assert.ok(error instanceof MusterError, String(error))
  assert.deepEqual([error.code, error.status], ['UNAVAILABLE', 503])
  assert.match(error.message, message)
  return true
}

test('the service is asked in the form of the spec, for the project, with the key', async (t) => {
  const asked: unknown[] = []
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const { authorization, 'x-project-id': project } = request.headers
    asked.push([request.method, request.url, authorization, project, await json(request)])
    send(response, 200, answer)
  }
  const url = await serveLocally(t, serve)
  for (const library of [libraryAt(url), libraryAt(`${url}/below/`, null)]) {
    assert.deepEqual(await library.get(projectId, 'planner', 'blue'), { messages, version: null })
  }
  const body = { prompt_id: 'planner', variant_id: 'blue' }
  assert.deepEqual(asked, [
    ['POST', '/v1/prompts/get', 'Bearer a-key', projectId, body],
    ['POST', '/below/v1/prompts/get', undefined, projectId, body],
  ])
})

test('nothing is kept: every call asks the service', async (t) => {
  let count = 0
  const url = await serveLocally(t, (_, response) => {
    count++
    send(response, 200, answer)
  })
  const library = libraryAt(url)
  await library.get(projectId, 'planner', 'blue')
  await library.get(projectId, 'planner', 'blue')
  assert.equal(count, 2)
})

test('an answer may have more fields than are needed', async (t) => {
  const more = { ...answer, prompt: { ...answer.prompt, tags: [], variant: { ...answer.prompt.variant, model: 'm' } } }
  assert.deepEqual((await ask(t, (_, response) => send(response, 200, more))).messages, messages)
})

test('a prompt that the service does not have is missing', async (t) => {
  const body = { error: { code: 'PROMPT_MISSING', message: 'None.', details: {} } }
  await assert.rejects(
    ask(t, (_, response) => send(response, 404, body)),
    (error: unknown) =>
      error instanceof MusterError &&
      error.code === 'PROMPT_MISSING' &&
      error.status === 422 &&
      /"planner" in the variant "blue"/.test(error.message),
  )
})

const away: { name: string; serve: (request: IncomingMessage, response: ServerResponse) => unknown; says: RegExp }[] = [
  {
    name: 'fails',
    serve: (_, response) => send(response, 500, { error: { code: 'INTERNAL_ERROR' } }),
    says: /500 INTERNAL_ERROR/,
  },
  { name: 'is not ready', serve: (_, response) => response.writeHead(503).end('<html>'), says: /answers 503/ },
  { name: 'refuses the key', serve: (_, response) => send(response, 401, {}), says: /set MUSTER_PROMPTS_KEY/ },
  {
    name: 'does not know the project',
    serve: (_, response) => send(response, 404, { error: { code: 'NOT_FOUND' } }),
    says: /does not know the project [0-9a-f-]+, or its key/,
  },
  { name: 'is something else', serve: (_, response) => send(response, 404, 'no'), says: /answers 404/ },
  { name: 'answers no prompt', serve: (_, response) => send(response, 200, { prompt: {} }), says: /are no prompts/ },
  { name: 'answers no JSON', serve: (_, response) => response.end('<html>'), says: /are no prompts/ },
  { name: 'cuts the connection', serve: (_, response) => response.destroy(), says: /cannot be reached/ },
  { name: 'never answers', serve: () => {}, says: /cannot be reached/ },
  {
    name: 'stops in the middle of its answer',
    serve: (_, response) => response.writeHead(200).write('{"prompt":'),
    says: /gave no whole answer/,
  },
  {
    name: 'is cut in the middle of its answer',
    serve: (_, response) => {
      response.writeHead(200, { 'content-length': '1000' }).write('{"prompt":', () => response.destroy())
    },
    says: /gave no whole answer/,
  },
  {
    name: 'answers without end',
    serve: (_, response) => {
      const more = (): void => void (response.destroyed || response.write('x'.repeat(65_536), more))
      response.writeHead(200)
      more()
    },
    says: /are no prompts/,
  },
]

for (const { name, serve, says } of away) {
  test(`a service that ${name} is unavailable, and the error differs from that of a missing prompt`, async (t) => {
    await assert.rejects(ask(t, serve), isUnavailable(says))
  })
}

test('a service that is down is unavailable, and is used again when it is back', async (t) => {
  let isUp = false
  const url = await serveLocally(t, (_, response) => (isUp ? send(response, 200, answer) : response.destroy()))
  const library = libraryAt(url)
  await assert.rejects(library.get(projectId, 'planner', 'blue'), isUnavailable(/127\.0\.0\.1/))
  await assert.rejects(libraryAt('http://127.0.0.1:1').get(projectId, 'p', 'blue'), isUnavailable(/cannot be reached/))
  isUp = true
  assert.deepEqual((await library.get(projectId, 'planner', 'blue')).messages, messages)
})

test('Retry-After is passed on, and the key is not in the error', async (t) => {
  await assert.rejects(
    ask(t, (_, response) => send(response, 429, {}, { 'retry-after': '7' })),
    (error: unknown) => error instanceof MusterError && error.retryAfterS === 7 && !error.message.includes('a-key'),
  )
})
