// Layouts of evals over HTTP: the figures of a real eval, read in the caller's project.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createEvalKit } from '../../../test/kit/evals.ts'
import { componentsOf, type Layout, type OfType } from '../../kernel/genui.ts'
import { newId } from '../../kernel/id.ts'

const kit = await createEvalKit({ finalizer: 'It is blue.' }, { finalizer: () => 'It is green.' })
const { key: member } = await kit.createKey(kit.project.id, 'member')
const evaluated = await kit.evaluate(
  [
    { task: 'Say the colour.', expect: { contains: 'green' } },
    { task: 'Say a word.', expect: { contains: 'It is' } },
  ],
  { name: 'Colours' },
)

type Answer = Layout & { error: { code: string } }
const ask = (eval_id: string, token = member, scenario = 'eval_comparison') =>
  kit.call<Answer>('POST /v1/genui/layout', { token, body: { context: { scenario, eval_id } } })
const tableOf = (layout: Layout, id: string): OfType<'table'> =>
  componentsOf(layout).find((each): each is OfType<'table'> => each.id === id && each.type === 'table') ??
  assert.fail(`${id}: ${JSON.stringify(layout)}`)

test('eval_comparison shows the figures of the eval, and the case that only one variant passes', async () => {
  const { status, body, text } = await ask(evaluated.id)
  assert.equal(status, 200, text)
  const title = componentsOf(body).find(({ id }) => id === 'title')
  assert.ok(title?.type === 'text' && title.value === 'Colours', text)
  const shares = tableOf(body, 'variants').rows.map(({ cells: [name, share] }) => [name, share])
  assert.deepEqual(shares, [
    ['blue', '50 %'],
    ['green', '100 %'],
  ])
  const chart = componentsOf(body).find(({ id }) => id === 'chart_pass_rate')
  assert.deepEqual(chart?.type === 'chart' ? chart.series[0]?.values : null, [50, 100])
  assert.match(text, /Say the colour\./)
  assert.doesNotMatch(text, /Say a word\./)
})

test('an eval that is under way is shown without figures', async () => {
  await kit.call(`POST ${kit.base}/halt`)
  const { body } = await kit.post([{ task: 'Wait.', expect: {} }])
  const answer = await ask(body.id)
  assert.equal(answer.status, 200, answer.text)
  assert.match(answer.text, /The eval is running\. 0 of 2 runs are done\./)
  await kit.call(`POST ${kit.base}/evals/${body.id}/cancel`)
  await kit.call(`POST ${kit.base}/unhalt`)
})

test('an eval of another project is answered like an unknown one, even if the layout does not need it', async () => {
  const other = await kit.createProject('of others')
  const { key: stranger } = await kit.createKey(other.id, 'admin')
  for (const scenario of ['eval_comparison', 'generic']) {
    const unknown = await ask(newId(), stranger, scenario)
    const known = await ask(evaluated.id, stranger, scenario)
    assert.deepEqual([known.status, known.body.error.code], [404, 'NOT_FOUND'])
    assert.equal(known.text, unknown.text)
  }
})

test('a viewer is refused', async () => {
  const { key } = await kit.createKey(kit.project.id, 'viewer')
  assert.equal((await ask(evaluated.id, key)).status, 403)
})
