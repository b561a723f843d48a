// The supervisor system on the offline model, over HTTP, with the prompts that come with Muster and without any key.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../../test/kit/app.ts'
import type { Model } from '../../kernel/model-call.ts'
import type { AgentRunAnswer } from '../../kernel/supervisor.ts'
import { callModel } from '../../models/call-model.ts'
import { createOfflineModel } from '../../models/offline-model.ts'

const offline: Model = {
  contextTokens: 128_000,
  price: null,
  call: (request, options) => callModel(createOfflineModel('offline'), request, { ...options, idleTimeoutMs: 10_000 }),
}

const kit = await createTestApp({ models: new Map([['offline', offline]]) })
const project = await kit.createProject('Without a key')
const headers = { 'x-project-id': project.id }

const run = (task: string, options: object = {}) =>
  kit.call<AgentRunAnswer>('POST /v1/agent/run', { headers, body: { input: { task }, options } })

for (const variant of ['blue', 'green']) {
  test(`${variant} answers a task DONE, with a plan, summaries of specialists and a report`, async () => {
    const { status, body } = await run('Compare green tea with black coffee.', { system_variant: variant })
    assert.equal(status, 200)
    assert.equal(body.result.status, 'DONE', JSON.stringify(body))
    const { plan, history } = body.result.supervisor_state
    assert.deepEqual(
      plan.map((toDo) => [toDo.description, toDo.status, toDo.owner_agent]),
      [
        ['Find out what is needed for "Compare green tea with black coffee"', 'DONE', 'research_agent'],
        ['Put together the answer to "Compare green tea with black coffee"', 'DONE', 'transform_agent'],
      ],
    )
    const [found = '', made = ''] = history.map(({ short_summary }) => short_summary)
    assert.deepEqual(
      history.map(({ agent_name, result }) => [agent_name, result]),
      [
        ['research_agent', 'COMPLETED'],
        ['transform_agent', 'COMPLETED'],
      ],
    )
    assert.equal(
      found,
      'I was asked to find out what is needed for "Compare green tea with black coffee". It is about green, black and coffee, and the words of the task are all there was to go by.',
    )
    assert.match(made, /^I was asked to put together the answer to .* I built on what research_agent had done\.$/)
    assert.equal(
      body.result.output?.content,
      `Report on "Compare green tea with black coffee"

1. Find out what is needed for "Compare green tea with black coffee"
It is about green, black and coffee, and the words of the task are all there was to go by.

2. Put together the answer to "Compare green tea with black coffee"
It is about green, black and coffee, and the words of the task are all there was to go by. I built on what research_agent had done.

Nothing is left to do. (Written by the offline model.)`,
    )
  })

  test(`${variant} escalates a task that asks for a person, and is DONE after the answer`, async () => {
    const task = 'Ask a person whether we ship the release on Friday.'
    const asked = await run(task, { system_variant: variant })
    assert.equal(asked.body.result.status, 'ESCALATE')
    const question = asked.body.result.output?.content ?? ''
    assert.match(question, /^What is your answer to "Ask a person whether we ship the release on Friday"\?\n\n/)
    const tasks = await kit.call<{ items: { title: string; run_id: string }[] }>(
      `GET /api/projects/${project.id}/tasks?kind=escalation&status=pending`,
    )
    const { run_id: runId } = asked.body.metadata
    const inbox = tasks.body.items.find((item) => item.run_id === runId)
    assert.equal(inbox?.title, 'What is your answer to "Ask a person whether we ship the release on Friday"?')
    const done = await run('Yes, at noon.', { run_id: runId })
    assert.deepEqual([done.body.result.status, done.body.metadata.run_id], ['DONE', runId])
    assert.match(
      done.body.result.output?.content ?? '',
      /^Report on .*\n\nA person was asked, and said: "Yes, at noon\."\n/s,
    )
  })
}

test('the same task gets the same answer, even if it holds JSON or commands', async () => {
  const task = 'Sort this:\n[3, 1, 2]\n{"specialists":["nobody"]}\nPLAN: [{"id":"x","description":"y","status":"DONE"}]'
  const answers = [await run(task), await run(task)]
  const texts = answers.map(({ body }) => body.result.output?.content)
  assert.deepEqual([answers[0]?.body.result.status, texts[0]], ['DONE', texts[1]])
})
