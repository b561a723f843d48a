// Chats whose run lost its model: the next message continues the run, and no work is done twice.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSupervisor, delegate, finish } from '../../../test/kit/supervisor.ts'
import type { Run } from '../../kernel/run.ts'

const down = { fail: { message: 'Away.', isRetryable: true } }
const message = (text: string, id: string | undefined = text) => ({ id, role: 'user', parts: [{ type: 'text', text }] })

/** A supervisor whose finalizer is away until `isAway` is false. */
async function createChat() {
  const away = { isAway: true }
  const kit = await createSupervisor(
    {
      supervisor: ({ prompt }) =>
        JSON.stringify(prompt).includes('agent_name') ? finish() : delegate('research_agent', [], 'Pay Ada.'),
      finalizer: () => (away.isAway ? down : 'Ada is paid.'),
    },
    { firstBackoffMs: 1 },
  )
  const post = async (messages: object[], more: object = {}) => {
    const answer = await kit.call('POST /v1/agent/chat', { headers: kit.headers, body: { id: 'c', messages, ...more } })
    assert.equal(answer.status, 200, answer.text)
    return { runId: String(answer.headers['x-run-id']), text: answer.text }
  }
  const runs = async () => (await kit.get<{ items: Run[] }>('/runs')).items
  return { ...kit, away, post, runs }
}

for (const [what, more] of [
  ['the same message', {}],
  ['a regenerated answer', { trigger: 'regenerate-message' }],
] as const) {
  test(`${what} after UNAVAILABLE continues the chat’s run and adds nothing`, async () => {
    const kit = await createChat()
    const first = await kit.post([message('Pay Ada.')])
    assert.match(first.text, /"code":"UNAVAILABLE"/)
    assert.equal((await kit.post([message('Pay Ada.')], more)).runId, first.runId, 'the model is still away')
    kit.away.isAway = false
    const again = await kit.post([message('Pay Ada.')], more)
    assert.equal(again.runId, first.runId)
    assert.match(again.text, /Ada is paid\..*"status":"DONE"/s)
    assert.equal(kit.asked('research_agent').length, 1)
    assert.equal(
      (await kit.runs()).filter((run) => run.trigger.type === 'supervisor').length,
      2,
      'one, and its specialist',
    )
    assert.doesNotMatch(JSON.stringify(kit.asked('finalizer').at(-1)?.prompt), /A person/)
    const repeated = await kit.post([message('Pay Ada.')])
    assert.deepEqual([repeated.runId, /Ada is paid\./.test(repeated.text)], [first.runId, true])
  })
}

test('another message after UNAVAILABLE continues the chat’s run, as the person’s word', async () => {
  const kit = await createChat()
  const first = await kit.post([message('Pay Ada.')])
  kit.away.isAway = false
  const next = await kit.post([message('Pay Ada.'), message('But be brief.')])
  assert.equal(next.runId, first.runId)
  const prompt = JSON.stringify(kit.asked('finalizer').at(-1)?.prompt)
  assert.match(prompt, /Pay Ada\.\\n\\nA person added:\\n- But be brief\./)
  assert.equal(kit.asked('research_agent').length, 1)
})

test('the same words without an id continue the run, and are a new task once it is done', async () => {
  const kit = await createChat()
  const { id: _, ...anonymous } = message('Pay Ada.')
  const first = await kit.post([anonymous])
  kit.away.isAway = false
  assert.equal((await kit.post([anonymous])).runId, first.runId)
  assert.notEqual((await kit.post([anonymous])).runId, first.runId)
})

test('an earlier answer that is made anew after UNAVAILABLE starts a new run', async () => {
  const kit = await createChat()
  kit.away.isAway = false
  await kit.post([message('Pay Ada.')])
  kit.away.isAway = true
  const second = await kit.post([message('Pay Ada.'), message('Pay Bob.')])
  kit.away.isAway = false
  const anew = await kit.post([message('Pay Ada.')], { trigger: 'regenerate-message' })
  assert.notEqual(anew.runId, second.runId)
})
