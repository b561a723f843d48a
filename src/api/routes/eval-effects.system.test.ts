// Runs of an eval read and decide like any other runs, and change nothing outside of themselves.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createEvalKit, summariesIn } from '../../../test/kit/evals.ts'
import { createScriptedModel } from '../../../test/kit/scripted-model.ts'
import { delegate, finish } from '../../../test/kit/supervisor.ts'
import type { Run, Step } from '../../kernel/run.ts'
import type { CallTool, ToolEffect } from '../../kernel/tool.ts'

const made: string[] = []
const tool = (name: string, effect: ToolEffect): CallTool => ({
  kind: 'call',
  name,
  description: name,
  inputSchema: { type: 'object' },
  parse: (args) => ({ ok: true, args }),
  effect,
  isPoller: false,
  timeoutMs: null,
  execute: async () => {
    made.push(name)
    return { done: true }
  },
})

/** Every call that changes something, or asks people. */
const HELD = [
  { name: 'change_keyed', args: {} },
  { name: 'change_unsafe', args: {} },
  { name: 'http_fetch', args: { url: 'https://example.com/', method: 'POST' } },
  { name: 'http_fetch', args: { url: 'https://example.com/', method: 'DELETE' } },
  { name: 'object_create', args: { type: 'note', properties: {} } },
  { name: 'task_create', args: { title: 'A task for people' } },
  { name: 'ask_human', args: { question: 'May I?' } },
]
const READS = [
  { name: 'look', args: {} },
  { name: 'object_search', args: { type: 'note' } },
]
const TOOLS = [...new Set([...HELD, ...READS].map(({ name }) => name)), 'spawn_agent']

test('calls that change something are answered without an effect, in specialists and in the runs below them', async () => {
  const kit = await createEvalKit(
    {
      supervisor: (request) => (summariesIn(request) === 0 ? delegate('research_agent') : finish()),
      work: {
        research_agent: (request) =>
          request.prompt.some(({ role }) => role === 'tool')
            ? 'All is done.'
            : { calls: [...HELD, ...READS, { name: 'spawn_agent', args: { agent: 'helper', input: 'Change it.' } }] },
      },
    },
    {},
    {
      tools: [tool('change_keyed', 'keyed'), tool('change_unsafe', 'unsafe'), tool('look', 'readonly')],
      models: new Map([
        [
          'script',
          createScriptedModel((request) =>
            request.prompt.some(({ role }) => role === 'tool') ? { text: 'I helped.' } : { calls: [...HELD, ...READS] },
          ),
        ],
      ]),
    },
  )
  await kit.createAgent(kit.project.id, { name: 'helper', tools: TOOLS })
  const specialists = [kit.specialist('research_agent', TOOLS), kit.specialist('transform_agent')]
  for (const variant of ['blue', 'green']) await kit.put(variant, { ...kit.config, specialists })

  const read = await kit.evaluate([{ task: 'Change it.', expect: { status: 'DONE', route: ['research_agent'] } }])
  assert.deepEqual(
    [read.variants.blue?.pass_rate, read.variants.green?.pass_rate],
    [1, 1],
    JSON.stringify(read.variants),
  )
  assert.deepEqual(made, ['look', 'look', 'look', 'look'], 'two specialists and two helpers have read')
  for (const path of ['/tasks', '/objects']) {
    assert.deepEqual((await kit.get<{ items: unknown[] }>(path)).items, [], path)
  }
  const { items } = await kit.get<{ items: Run[] }>('/runs?limit=200')
  assert.ok(items.every(({ trigger }) => trigger.eval_id === read.id))
  const workers = items.filter(({ trigger }) => trigger.type === 'spawn' || trigger.node === 'research_agent')
  assert.equal(workers.length, 4)
  for (const { id } of workers) {
    const steps = (await kit.get<{ items: Step[] }>(`/runs/${id}/steps`)).items
    const results = steps.flatMap((step) => (step.kind === 'tool' ? [step] : []))
    const heldNames = HELD.map(({ name }) => name)
    for (const { name, result, is_error: isError } of results.filter((each) => heldNames.includes(each.name))) {
      assert.match(
        JSON.stringify(result),
        name === 'ask_human' ? /Nobody is asked in an eval/ : /Nothing is applied in an eval/,
      )
      assert.equal(isError, false)
    }
    assert.equal(results.filter((each) => heldNames.includes(each.name)).length, HELD.length)
    assert.deepEqual(results.find(({ name }) => name === 'look')?.result, { done: true })
  }
})

test('the same calls take effect in a run that belongs to no eval', async () => {
  made.length = 0
  const kit = await createEvalKit(
    {
      supervisor: (request) => (summariesIn(request) === 0 ? delegate('research_agent') : finish()),
      work: {
        research_agent: (request) =>
          request.prompt.some(({ role }) => role === 'tool')
            ? 'All is done.'
            : { calls: HELD.filter(({ name }) => name.startsWith('change') || name === 'object_create') },
      },
    },
    {},
    { tools: [tool('change_keyed', 'keyed'), tool('change_unsafe', 'unsafe'), tool('look', 'readonly')] },
  )
  const specialists = [kit.specialist('research_agent', TOOLS), kit.specialist('transform_agent')]
  await kit.put('blue', { ...kit.config, specialists })
  const { body } = await kit.run('Change it.', { options: { system_variant: 'blue' } })
  assert.equal(body.result.status, 'DONE')
  assert.deepEqual(made.toSorted(), ['change_keyed', 'change_unsafe'])
  assert.equal((await kit.get<{ items: unknown[] }>('/objects')).items.length, 1)
})

test('an escalated run of an eval has ended, and cannot be answered or resumed', async () => {
  const kit = await createEvalKit({ supervisor: { plan: [], action: 'escalate' }, escalation: 'Shall we?' })
  const read = await kit.evaluate([{ task: 'Ask.', expect: { status: 'ESCALATE', contains: 'Shall we?' } }])
  assert.equal(read.variants.blue?.pass_rate, 1)
  const runId = read.variants.blue?.cases[0]?.run_id ?? ''
  const run = await kit.get<Run>(`/runs/${runId}`)
  assert.deepEqual([run.status, run.pause_reason, run.completed_at === null], ['paused', 'human', false])
  const answered = await kit.run('Yes.', { options: { run_id: runId } })
  assert.equal(answered.status, 409)
  const resumed = await kit.call(`POST ${kit.base}/runs/${runId}/resume`)
  assert.ok(resumed.status >= 400 && resumed.status < 500, resumed.text)
})
