// LangSmith's side is a server on this machine that answers as LangSmith's documentation and its SDK describe. Nothing
// here was tried against LangSmith itself.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '../kernel/log.ts'
import { createLangsmithUrls, langsmithRunId, langsmithTarget, webOf } from './langsmith.ts'

const TENANT = '0e6f0d1c-3f0f-4d6c-9d0a-111111111111'
const PROJECT = '5c3a9c52-5d3b-4f5e-8a55-222222222222'
const langsmith = { url: new URL('https://api.smith.langchain.com'), key: 'lsv2_key', project: 'my project' }
const place = { traceId: '0'.repeat(32), spanId: '0102030405060708' }

test('a span has the id that LangSmith gives it: its own id, filled up with zeros', () => {
  // This vector is from the SDK's own test.
  assert.equal(langsmithRunId('0102030405060708'), '00000000-0000-0000-0102-030405060708')
})

for (const [api, web] of [
  ['https://api.smith.langchain.com', 'https://smith.langchain.com'],
  ['https://eu.api.smith.langchain.com/', 'https://eu.smith.langchain.com'],
  ['https://ai.example.com/api/v1', 'https://ai.example.com'],
  ['https://ai.example.com/api', 'https://ai.example.com'],
  ['http://localhost:1984', 'http://localhost:1984'],
] as const) {
  test(`people see the traces of ${api} at ${web}`, () => assert.equal(webOf(new URL(api)), web))
}

test('traces of runs alone are sent to the OTLP endpoint of LangSmith, with its headers', () => {
  const { url, headers, runsOnly } = langsmithTarget({ ...langsmith, url: new URL('https://ai.example.com/api/v1/') })
  assert.equal(url, 'https://ai.example.com/api/v1/otel/v1/traces')
  assert.deepEqual([headers, runsOnly], [{ 'x-api-key': 'lsv2_key', 'langsmith-project': 'my project' }, true])
})

test('the address is null until LangSmith has named the project; LangSmith is asked once, and again after a while', async () => {
  const asked: { url: string; key: string | null }[] = []
  let answer = (): Response => Response.json([])
  const settled: Promise<unknown>[] = []
  const fetch: typeof globalThis.fetch = async (input, init) => {
    asked.push({ url: String(input), key: new Headers(init?.headers).get('x-api-key') })
    const response = answer()
    settled.push(Promise.resolve(response))
    return response
  }
  let nowMs = 0
  const urlOf = createLangsmithUrls({ langsmith, fetch, log: silentLog, now: () => nowMs })
  const later = async (): Promise<void> => {
    await Promise.all(settled)
    await new Promise(setImmediate)
  }
  assert.equal(urlOf(place), null)
  assert.equal(urlOf(place), null)
  await later()
  assert.deepEqual(asked, [
    { url: 'https://api.smith.langchain.com/sessions?name=my%20project&limit=1', key: 'lsv2_key' },
  ])
  // LangSmith makes the project with the first trace, so the project does not exist yet.
  assert.equal(urlOf(place), null)
  for (const failing of [() => new Response('', { status: 403 }), () => Response.json({ not: 'a list' })]) {
    answer = failing
    nowMs += 30_000
    assert.equal(urlOf(place), null)
    await later()
  }
  assert.equal(asked.length, 3)
  answer = () => Response.json([{ id: PROJECT, tenant_id: TENANT, name: 'my project' }])
  nowMs += 30_000
  urlOf(place)
  await later()
  const expected = `https://smith.langchain.com/o/${TENANT}/projects/p/${PROJECT}/r/00000000-0000-0000-0102-030405060708?poll=true`
  assert.equal(urlOf(place), expected)
  nowMs += 300_000
  assert.equal(urlOf(place), expected)
  assert.equal(asked.length, 4, 'a known address is not asked for again')
})
