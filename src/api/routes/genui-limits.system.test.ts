// Layouts among other requests: a layout that reads a whole eval takes a heavy place, and a call of a model ends when
// the client has left.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { test } from 'node:test'
import { createTestPool } from '../../../test/kit/database.ts'
import { createEvalKit } from '../../../test/kit/evals.ts'
import { until } from '../../../test/kit/until.ts'

/** A model that is asked and never answers. */
const asked: AbortSignal[] = []
const kit = await createEvalKit(
  {},
  {},
  {
    decide: (_project, _question, signal) => {
      if (!isSlow) return Promise.resolve(null)
      asked.push(signal)
      return new Promise(() => {})
    },
  },
)
let isSlow = false
const address = await kit.app.listen({ port: 0, host: '127.0.0.1' })
const { key } = await kit.createKey(kit.project.id, 'member')
const evaluated = await kit.evaluate([{ task: 'Do it.', expect: {} }])
const outside = createTestPool(kit.url, 2)

const ask = (scenario: string) =>
  kit.call('POST /v1/genui/layout', { token: key, body: { context: { scenario, eval_id: evaluated.id } } })

test('one layout of an eval is read at a time, and a page that only names the eval reads no results', async () => {
  const client = await outside.connect()
  const waiting = async (): Promise<number> => {
    const { rowCount } = await outside.query(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
       and query like '%eval_results%'`,
    )
    return rowCount ?? 0
  }
  await client.query('begin; lock table eval_results in access exclusive mode')
  const flood = Array.from({ length: 10 }, () => ask('eval_comparison'))
  try {
    await until(async () => (await waiting()) > 0, 'the first reads its results')
    for (let count = 0; count < 5; count++) assert.equal((await ask('generic')).status, 200)
    assert.equal(await waiting(), 1)
  } finally {
    await client.query('rollback')
    client.release()
    await outside.end()
  }
  assert.deepEqual(new Set((await Promise.all(flood)).map(({ status }) => status)), new Set([200]))
})

test('a call of the model is given up when the client has gone', { timeout: 10_000 }, async () => {
  isSlow = true
  const request = httpRequest(`${address}/v1/genui/layout`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
  })
  request.on('error', () => {})
  request.end(JSON.stringify({ context: { scenario: 'generic' } }))
  await until(() => asked.length === 1, 'the model is asked')
  const [signal] = asked
  const given = signal?.aborted === false ? once(signal, 'abort') : assert.fail('the call is given up too early')
  request.destroy()
  await given
})

test('a server that closes does not wait for the model, and answers with the page of the facts', async () => {
  isSlow = true
  asked.splice(0)
  const answer = ask('generic')
  await until(() => asked.length === 1, 'the model is asked')
  const begun = performance.now()
  await kit.app.close()
  assert.equal((await answer).status, 200)
  assert.ok(performance.now() - begun < 10_000, 'the server waited for the model')
})
