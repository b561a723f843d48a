// kill -9 of the server, twice, while commands follow a run in mid-answer: they come back by themselves, also when the
// next server listens on another port, and lose no text.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createCommandKit } from '../kit/command.ts'
import { createUnusedDatabase } from '../kit/database.ts'
import { type Plan, startFakeModel } from '../kit/fake-model.ts'
import { type Muster, makeFolder, startMuster } from '../kit/process.ts'
import { until } from '../kit/until.ts'

const FIRST = 'Rain falls on the roof, and the roof does not mind. '
const SECOND = 'Snow falls on the rain, and nobody hears it at all.'
const plan: Plan = {
  tag: 'weather',
  steps: [
    { say: FIRST, calls: [{ name: 'object_search', args: { q: 'rain' } }] },
    { say: SECOND, gate: 'mid-answer' },
  ],
}

test('a followed run survives two deaths of its server, and every word of it arrives once', async (t) => {
  const model = await startFakeModel(t)
  const dataDir = `${await makeFolder(t)}/data`
  const databaseUrl = await createUnusedDatabase()
  const env = { MUSTER_DEMO: 'off', MUSTER_LEASE: '1000' }
  const start = (): Promise<Muster> => startMuster(t, { dataDir, databaseUrl, env })
  let muster = await start()
  const { run, begin } = createCommandKit(
    t,
    () => muster,
    () => ({}),
  )
  await muster.call('POST /api/providers', {
    body: { name: 'planned', kind: 'openai-compatible', base_url: model.url },
  })
  const project = await muster.call<{ id: string }>('POST /api/projects', { body: { name: 'Weather' } })
  await muster.call(`POST /api/projects/${project.body.id}/agents`, {
    body: { name: 'Writer', model: { provider: 'planned', name: 'planned' }, tools: ['object_search'] },
  })

  model.hold('mid-answer')
  const first = await begin(t, ['run', 'Writer', '--input', JSON.stringify(plan)])
  await until(() => model.held('mid-answer') === 1, 'the model is in the middle of its second answer', 60_000)
  const second = await begin(t, ['follow', 'Writer', '--json'])
  await until(() => /"event":"token"/.test(second.stdout()), 'the second reader has seen a part of the answer', 60_000)
  for (const death of [1, 2]) {
    await muster.kill('SIGKILL')
    muster = await start()
    await until(() => model.held('mid-answer') === 1, 'the model is asked again', 60_000)
    const isBack = (): boolean => first.stderr().split('The server is back.').length - 1 === death
    await until(isBack, 'the first reader is connected again', 60_000)
  }
  model.release('mid-answer')

  const [one, other] = await Promise.all([first.exited, second.exited])
  assert.deepEqual([one.code, other.code], [0, 0], `${first.stderr()}${second.stderr()}`)
  assert.equal(first.stdout(), `${FIRST}\n${SECOND}\n`)
  assert.match(first.stderr(), /The connection is lost[\s\S]*The server is back\.[\s\S]*The connection is lost/)
  assert.match(first.stderr(), /the model is asked again/)

  const events = second
    .stdout()
    .trimEnd()
    .split('\n')
    .map((line): { event: string; id: string | null; data: Record<string, unknown> } => JSON.parse(line))
  const ids = events.flatMap(({ id }) => (id === null ? [] : [Number(id)]))
  assert.deepEqual(
    ids,
    ids.map((_, place) => place + 1),
    'each event came once and in order',
  )
  assert.equal(events.filter(({ event }) => event === 'step.restarted').length, 2)
  const texts = events.filter(({ event }) => event === 'step.completed').map(({ data }) => data.text)
  assert.deepEqual(texts, [FIRST, SECOND])
  // The same again, long after the end.
  assert.equal((await run(['follow', 'Writer'])).stdout, first.stdout())
})
