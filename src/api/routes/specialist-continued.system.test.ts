// A specialist whose model was unavailable continues when its supervisor's run is continued: its finished calls stand.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { testTool } from '../../../test/kit/run-worker.ts'
import { createScriptedModel, type ScriptedModel } from '../../../test/kit/scripted-model.ts'
import { createSupervisor, delegate, finish, type Replies, summary } from '../../../test/kit/supervisor.ts'
import type { Run } from '../../kernel/run.ts'

const down = { fail: { message: 'Quota used up.', isRetryable: true } }

/** A supervisor whose specialist pays and mails, then loses its model until `isAway` is false. */
async function createPaying(replies: Replies = {}) {
  const made: { tool: string; key: string }[] = []
  const tools = (['unsafe', 'keyed'] as const).map((effect) => {
    const tool = effect === 'unsafe' ? 'pay' : 'mail'
    return testTool(tool, async (_args, { key }) => ({ number: made.push({ tool, key }) }), { effect })
  })
  const away = { work: true, summary: false }
  const calls = ['pay', 'mail'].map((name) => ({ name, args: { to: 'Ada' } }))
  const work = ({ prompt }: { prompt: readonly { role: string }[] }) =>
    prompt.some(({ role }) => role === 'tool') ? (away.work ? down : 'Paid and told.') : { calls }
  const kit = await createSupervisor(
    {
      supervisor: ({ prompt }) =>
        JSON.stringify(prompt).includes('agent_name') ? finish() : delegate('research_agent', [], 'Pay Ada.'),
      work: { research_agent: work },
      summary: { research_agent: () => (away.summary ? down : summary()) },
      ...replies,
    },
    { tools, firstBackoffMs: 1 },
  )
  const specialists = [kit.specialist('research_agent', ['pay', 'mail']), kit.specialist('transform_agent')]
  assert.equal((await kit.put('blue', { ...kit.config, specialists })).status, 200)
  const childrenOf = async (runId: string) =>
    (await kit.get<{ items: Run[] }>(`/runs?parent_run_id=${runId}`)).items.toReversed()
  const goOn = (runId: string) => kit.run('Pay Ada.', { options: { run_id: runId } })
  return { ...kit, away, made, childrenOf, goOn }
}

test('the finished calls of a specialist are not made again when the run is continued', async () => {
  const kit = await createPaying()
  const first = await kit.run('Pay Ada.')
  const runId = String(first.body.error?.details.run_id)
  assert.deepEqual([first.status, kit.made.map(({ tool }) => tool)], [503, ['pay', 'mail']])
  const again = await kit.goOn(runId)
  assert.equal(again.status, 503, 'the model is still away')
  kit.away.work = false
  const { body } = await kit.goOn(runId)
  assert.equal(body.result.status, 'DONE', JSON.stringify(body))
  assert.deepEqual(
    kit.made.map(({ tool }) => tool),
    ['pay', 'mail'],
  )
  const children = await kit.childrenOf(runId)
  assert.deepEqual(
    children.map(({ resumed_from: from }) => from),
    [null, children[0]?.id, children[1]?.id],
  )
  const [told] = body.result.supervisor_state.history
  assert.deepEqual([told?.result, told?.step_id], ['COMPLETED', children[2]?.id])
  assert.equal(JSON.stringify(kit.asked('research_agent').at(-1)?.prompt).split('Pay Ada.').length, 2)
})

test('a specialist whose summary failed is asked for the summary alone', async () => {
  const kit = await createPaying()
  kit.away.work = false
  kit.away.summary = true
  const runId = String((await kit.run('Pay Ada.')).body.error?.details.run_id)
  kit.away.summary = false
  const worked = kit.asked('research_agent').length
  assert.equal((await kit.goOn(runId)).body.result.status, 'DONE')
  assert.deepEqual([kit.asked('research_agent').length, kit.made.length], [worked, 2])
})

test('work that failed twice escalates, though one of its runs was continued', async () => {
  const kit = await createPaying({
    supervisor: () => delegate('research_agent', [], 'Pay Ada.'),
    summary: { research_agent: summary('FAILED', 'No.') },
  })
  const runId = String((await kit.run('Pay Ada.')).body.error?.details.run_id)
  kit.away.work = false
  const { body } = await kit.goOn(runId)
  assert.equal(body.result.status, 'ESCALATE', JSON.stringify(body))
  assert.equal(body.result.supervisor_state.history.length, 2)
})

test('a sub-agent of a specialist does not wait for its provider, and continues with the run', async () => {
  const kit = await createPaying({
    work: {
      research_agent: ({ prompt }) =>
        prompt.some(({ role }) => role === 'tool')
          ? 'Paid.'
          : { calls: [{ name: 'spawn_agent', args: { agent: 'Clerk', input: 'Pay Ada.' } }] },
    },
  })
  const clerk: ScriptedModel = createScriptedModel(({ prompt }) =>
    prompt.some(({ role }) => role === 'tool')
      ? kit.away.work
        ? down
        : { text: 'Paid.' }
      : { calls: [{ name: 'pay', args: { to: 'Ada' } }] },
  )
  kit.models.set('clerk', clerk)
  await kit.createAgent(kit.project.id, { name: 'Clerk', model: { provider: 'test', name: 'clerk' }, tools: ['pay'] })
  const specialists = [kit.specialist('research_agent', ['spawn_agent']), kit.specialist('transform_agent')]
  assert.equal((await kit.put('blue', { ...kit.config, specialists })).status, 200)
  const first = await kit.run('Pay Ada.')
  assert.deepEqual([first.status, first.body.error?.code], [503, 'UNAVAILABLE'], JSON.stringify(first.body))
  const runId = String(first.body.error?.details.run_id)
  assert.equal((await kit.goOn(runId)).status, 503, 'the model is still away')
  kit.away.work = false
  const { body } = await kit.goOn(runId)
  assert.equal(body.result.status, 'DONE', JSON.stringify(body))
  assert.deepEqual(kit.made.length, 1)
  const specialistRuns = await kit.childrenOf(runId)
  const clerks = (await Promise.all(specialistRuns.map(({ id }) => kit.childrenOf(id)))).flat()
  assert.deepEqual(
    clerks.map(({ status, resumed_from: from }) => [status, from]),
    [
      ['paused', null],
      ['paused', clerks[0]?.id],
      ['completed', clerks[1]?.id],
    ],
  )
  assert.equal(kit.asked('research_agent').length, 2, 'the specialist was asked for its call and after its result')
})
