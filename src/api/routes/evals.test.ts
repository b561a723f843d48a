// Evals over HTTP, with models that the tests script.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createEvalKit, decide, summariesIn, textOf } from '../../../test/kit/evals.ts'
import { finish } from '../../../test/kit/supervisor.ts'
import { until } from '../../../test/kit/until.ts'
import type { Eval, ListedEval } from '../../kernel/eval.ts'
import { newId } from '../../kernel/id.ts'
import type { Run } from '../../kernel/run.ts'

const kit = await createEvalKit()
const one = [{ task: 'A task', expect: { status: 'DONE' } }]

test('an eval is made, listed newest first by pages, and read', async () => {
  const names = ['first', 'second', 'third']
  const made: ListedEval[] = []
  for (const name of names) made.push((await kit.post(one, { name })).body)
  for (const { id } of made) await kit.untilEnded(id)
  const page = await kit.get<{ items: ListedEval[]; next_cursor: string }>('/evals?limit=2')
  assert.deepEqual(
    page.items.map(({ name }) => name),
    ['third', 'second'],
  )
  const rest = await kit.get<{ items: ListedEval[]; next_cursor: null }>(`/evals?limit=2&cursor=${page.next_cursor}`)
  assert.deepEqual([rest.items.map(({ name }) => name), rest.next_cursor], [['first'], null])
  const { variants: _, deltas: __, intervals: ___, changed: ____, ...listed } = await kit.readEval(made[0]?.id ?? '')
  assert.deepEqual(rest.items[0], listed)
  for (const id of [newId(), 'no-id']) {
    for (const route of [`GET ${kit.base}/evals/${id}`, `POST ${kit.base}/evals/${id}/cancel`]) {
      assert.equal((await kit.call(route)).status, 404)
    }
  }
})

test('the same Idempotency-Key makes one eval', async () => {
  const make = () =>
    kit.call<ListedEval>(`POST ${kit.base}/evals`, {
      headers: { 'idempotency-key': 'an eval' },
      body: { name: 'once', variants: ['blue', 'green'], cases: one },
    })
  const [first, second] = [await make(), await make()]
  assert.deepEqual([first.status, second.status], [201, 201])
  assert.deepEqual(second.body, first.body)
  await kit.untilEnded(first.body.id)
})

test('an eval of one variant, with a case that expects nothing, has figures and no deltas', async () => {
  const { status, body } = await kit.post([{ task: 'Anything' }], { variants: ['blue'] })
  assert.equal(status, 201)
  const read = await kit.untilEnded(body.id)
  assert.deepEqual([read.status, read.variants.blue?.pass_rate], ['completed', 1])
  assert.deepEqual(read.deltas, { pass_rate: null, latency: null, tokens: null })
  assert.deepEqual(read.variants.blue?.correctness, { status: null, routing: null, escalation: null })
})

const task = 'A task'
const refused: [name: string, body: object][] = [
  ['no cases', { cases: [] }],
  ['too many cases', { cases: Array.from({ length: 1_001 }, () => ({ task, expect: {} })) }],
  ['no variants', { variants: [] }],
  ['the same variant twice', { variants: ['blue', 'blue'] }],
  ['eleven variants', { variants: Array.from({ length: 11 }, (_, place) => `v${place}`) }],
  ['a variant that does not exist', { variants: ['blue', 'red'] }],
  ['a malformed variant', { variants: ['blue', '/'] }],
  ['no name', { name: '' }],
  ['a case without a task', { cases: [{ expect: {} }] }],
  ['a blank task', { cases: [{ task: ' ', expect: {} }] }],
  ['a task and a run', { cases: [{ task, expect: {}, run_id: newId() }] }],
  ['a run and an expectation', { cases: [{ run_id: newId(), expect: {} }] }],
  ['a run that does not exist', { cases: [{ run_id: newId() }] }],
  ['a malformed run id', { cases: [{ run_id: 'no-id' }] }],
  ['an unknown expectation', { cases: [{ task, expect: { stauts: 'DONE' } }] }],
  ['an unknown status', { cases: [{ task, expect: { status: 'RUNNING' } }] }],
  ['a negative number of steps', { cases: [{ task, expect: { max_steps: -1 } }] }],
  ['an empty part of the output', { cases: [{ task, expect: { contains: '' } }] }],
  ['an unknown field', { more: true }],
]

for (const [name, body] of refused) {
  test(`an eval is refused, and nothing is made: ${name}`, async () => {
    const before = await kit.get<{ items: ListedEval[] }>('/evals')
    const { status, body: said } = await kit.post(one, body)
    assert.deepEqual([status, said.error?.code], [400, 'INVALID_REQUEST'])
    assert.deepEqual(await kit.get('/evals'), before)
  })
}

test('an eval of ten variants and a thousand cases is accepted, and can be cancelled', async () => {
  const variants = ['blue', 'green', ...Array.from({ length: 8 }, (_, place) => `v${place}`)]
  for (const variant of variants.slice(2)) await kit.put(variant, { ...kit.config, traffic: 0 })
  const cases = Array.from({ length: 1_000 }, () => ({ task, expect: {} }))
  const { status, body } = await kit.post(cases, { variants })
  assert.deepEqual([status, body.progress], [201, { done: 0, total: 10_000 }])
  const cancelled = await kit.call<ListedEval>(`POST ${kit.base}/evals/${body.id}/cancel`)
  assert.deepEqual([cancelled.status, cancelled.body.status], [200, 'cancelled'])
  const read = await kit.readEval(body.id)
  assert.deepEqual(Object.keys(read.variants), variants)
  assert.equal(read.variants.v7?.cases.length, 1_000)
  await until(async () => (await openRunsOf(kit, body.id)) === 0, 'its runs have ended')
})

const openRunsOf = async ({ pool }: Pick<typeof kit, 'pool'>, evalId: string): Promise<number> =>
  (await pool.query(`select from agent_runs where trigger->>'eval_id' = $1 and completed_at is null`, [evalId]))
    .rowCount ?? 0

test('a recorded run may be a case: its task is run again, and its course is expected', async () => {
  const recorded = await createEvalKit(
    {
      supervisor: (request) => {
        const asksPeople = /ask me/.test(textOf(request)) && !/answered:/.test(textOf(request))
        return decide(asksPeople && summariesIn(request) > 0 ? 'E' : 'R', request)
      },
      finalizer: 'The answer.',
    },
    { supervisor: (request) => decide(/plain/.test(textOf(request)) ? 'RT' : 'R', request) },
  )
  const metadata = { customer: 'Ada' }
  const plain = await recorded.run('A plain task', { context: { context_id: 'c1', metadata } })
  const asked = await recorded.run('A task: ask me')
  assert.equal(asked.body.result.status, 'ESCALATE')
  const runId = asked.body.metadata.run_id
  const answered = await recorded.run('Do go on.', { options: { run_id: runId } })
  assert.equal(answered.body.result.status, 'DONE')

  const read = await recorded.evaluate([{ run_id: plain.body.metadata.run_id }, { run_id: runId }])
  const { blue, green } = read.variants
  assert.deepEqual(
    blue?.cases.map(({ task: given, passed, status, route }) => [given, passed, status, route]),
    [
      ['A plain task', true, 'DONE', ['research_agent']],
      // The run escalates after the same specialist; this time nobody answers.
      ['A task: ask me', true, 'ESCALATE', ['research_agent']],
    ],
  )
  assert.deepEqual(
    green?.cases.map(({ reason }) => reason),
    [
      'The route is research_agent → transform_agent; expected was research_agent.',
      'The status is DONE; expected was ESCALATE.',
    ],
  )
  const shown = recorded.asked('supervisor').map(textOf)
  assert.ok(shown.filter((text) => text.includes('"customer":"Ada"')).length > 2, 'the context is given again')
  assert.equal(shown.filter((text) => text.includes('"context_id":"c1"')).length, 2, 'in the first run alone')

  const specialist = await recorded.get<{ items: Run[] }>(`/runs?parent_run_id=${runId}`)
  const elsewhere = await recorded.createProject('elsewhere')
  const foreign = await recorded.call<{ error: { message: string } }>(`POST /api/projects/${elsewhere.id}/evals`, {
    body: { name: 'x', variants: ['blue', 'green'], cases: [{ run_id: runId }] },
  })
  const below = await recorded.post([{ run_id: specialist.items[0]?.id }])
  assert.deepEqual([foreign.status, below.status], [400, 400])
  assert.equal(below.body.error?.message, foreign.body.error.message)
})

test('a run that was cancelled or is under way cannot be a case', async () => {
  let isHeld = true
  const held = await createEvalKit({
    supervisor: () => (isHeld ? { waitFor: 'abort' } : finish()),
  })
  const started = held.run('Wait')
  const open = async () => (await held.get<{ items: Run[] }>('/runs?status=running')).items[0]
  await until(async () => (await open()) !== undefined, 'the run is under way')
  const runId = (await open())?.id
  const early = await held.post([{ run_id: runId }])
  assert.match(early.body.error?.message ?? '', /cases\[0\].run_id: the run is still running/)
  await held.call(`POST ${held.base}/runs/${runId}/cancel`)
  await started
  const late = await held.post([{ run_id: runId }])
  assert.match(late.body.error?.message ?? '', /the run was cancelled/)
  isHeld = false
})

test('a cancel stops the runs under way, and starts no others', async () => {
  const held = await createEvalKit({ supervisor: () => ({ waitFor: 'abort' }) })
  const { body } = await held.post(Array.from({ length: 20 }, () => ({ task, expect: {} })))
  const underWay = async () => (await held.get<{ items: Run[] }>('/runs?status=running')).items
  await until(async () => (await underWay()).length === 5, 'five runs are under way')
  const during = await held.readEval(body.id)
  assert.equal(during.variants.blue?.cases.filter(({ status }) => status === 'RUNNING').length, 3)
  const cancelled = await held.call<ListedEval>(`POST ${held.base}/evals/${body.id}/cancel`)
  assert.deepEqual([cancelled.body.status, cancelled.body.progress.done], ['cancelled', 0])
  await until(async () => (await underWay()).length === 0, 'they have ended')
  const { items } = await held.get<{ items: Run[] }>('/runs?limit=200')
  assert.deepEqual([items.length, new Set(items.map(({ status }) => status))], [5, new Set(['cancelled'])])
  const isOpen = async () =>
    (await held.pool.query('select from evals where id = $1 and is_open', [body.id])).rowCount !== 0
  await until(async () => !(await isOpen()), 'the eval is over')
  const again = await held.call<ListedEval>(`POST ${held.base}/evals/${body.id}/cancel`)
  assert.deepEqual([again.status, again.body], [200, cancelled.body])
})

test('the off switch pauses an eval, and its release lets it go on', async () => {
  const halted = await createEvalKit()
  await halted.call(`POST ${halted.base}/halt`)
  const { body } = await halted.post(Array.from({ length: 4 }, () => ({ task, expect: { status: 'DONE' } })))
  // Another project's eval is made after this one, and ends, so this eval had its chance to go on.
  const other = await halted.createProject('other')
  await halted.call(`PUT /api/projects/${other.id}/systems/blue`, { body: halted.config })
  await halted.call(`PUT /api/projects/${other.id}/systems/green`, { body: halted.config })
  const theirs = await halted.call<ListedEval>(`POST /api/projects/${other.id}/evals`, {
    body: { name: 'theirs', variants: ['blue', 'green'], cases: one },
  })
  const theirEval = () => halted.call<Eval>(`GET /api/projects/${other.id}/evals/${theirs.body.id}`)
  await until(async () => (await theirEval()).body.status === 'completed', 'theirs has ended', 30_000)
  const waiting = await halted.readEval(body.id)
  assert.deepEqual([waiting.status, waiting.progress.done], ['running', 0])
  assert.equal(await openRunsOf(halted, body.id), 0)
  await halted.call(`POST ${halted.base}/unhalt`)
  const read = await halted.untilEnded(body.id)
  assert.deepEqual([read.status, read.variants.green?.pass_rate], ['completed', 1])
})

test('a model that stays unavailable fails the case, and the eval goes on', async () => {
  const away = await createEvalKit(
    {},
    { supervisor: () => ({ fail: { message: 'overloaded', isRetryable: true } }) },
    { firstBackoffMs: 1 },
  )
  const read = await away.evaluate([{ task, expect: {} }, ...one])
  assert.deepEqual([read.status, read.deltas.pass_rate], ['completed', -1])
  assert.deepEqual(
    read.variants.green?.cases.map(({ status }) => status),
    ['FAILED', 'FAILED'],
  )
  assert.match(read.variants.green?.cases[0]?.reason ?? '', /^The run is FAILED \(UNAVAILABLE: .*overloaded/)
  assert.equal(await openRunsOf(away, read.id), 0, 'no run waits for people')
})

test('an eval of a deleted project is gone, and starts nothing more', async () => {
  const held = await createEvalKit({ supervisor: () => ({ waitFor: 'abort' }) })
  const { body } = await held.post(Array.from({ length: 20 }, () => ({ task, expect: {} })))
  await until(async () => (await openRunsOf(held, body.id)) === 5, 'five runs are under way')
  await held.call(`DELETE ${held.base}`)
  assert.equal((await held.call(`GET ${held.base}/evals/${body.id}`)).status, 404)
  const { rows } = await held.pool.query('select count(*)::int as count from agent_runs where project_id = $1', [
    held.project.id,
  ])
  assert.deepEqual(rows, [{ count: 5 }])
})
