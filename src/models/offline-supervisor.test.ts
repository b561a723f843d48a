import assert from 'node:assert/strict'
import { test } from 'node:test'
import { countCharacters } from '../../test/kit/count-characters.ts'
import { agentSummaryDecision, readDecision, type SupervisorDecision } from '../kernel/decision.ts'
import { renderPrompt } from '../prompts/render-prompt.ts'
import { loadShippedPrompts } from '../prompts/shipped-prompts.ts'
import { createOfflineModel } from './offline-model.ts'
import { decideAsSupervisor } from './offline-supervisor.ts'
import { readSystemMessage } from './offline-system-message.ts'

const model = createOfflineModel('offline')
const shipped = await loadShippedPrompts()
const VARIANTS = ['blue', 'green'] as const

interface Given {
  task?: string
  plan?: object[]
  history?: object[]
  metadata?: object
}

/** The prompt as it comes with Muster, with its variables filled in as the nodes do. */
function promptOf(
  promptId: string,
  variant: string,
  { task = 'Compare green tea with black coffee.', ...given }: Given,
) {
  const shown = shipped.find(promptId, variant)
  assert.ok(shown, `${promptId} ${variant}`)
  const context = { ...given.metadata, specialists: ['research_agent', 'transform_agent'] }
  return renderPrompt(shown, {
    USER_INPUT: task,
    PLAN_JSON: JSON.stringify(given.plan ?? []),
    HISTORY_JSON: JSON.stringify(given.history ?? []),
    CONTEXT_METADATA: JSON.stringify(context),
  })
}

const userText = (promptId: string, variant: string, given: Given): string =>
  promptOf(promptId, variant, given)
    .filter(({ role }) => role === 'user')
    .map(({ content }) => content)
    .join('\n\n')

async function ask(promptId: string, variant: string, given: Given): Promise<string> {
  const prompt = promptOf(promptId, variant, given).map(({ role, content }) =>
    role === 'system'
      ? { role, content }
      : { role: 'user' as const, content: [{ type: 'text' as const, text: content }] },
  )
  const { content } = await model.doGenerate({ prompt })
  return content.map((part) => (part.type === 'text' ? part.text : '')).join('')
}

function decide(given: Given, variant = 'blue'): SupervisorDecision {
  const decided = decideAsSupervisor(userText('supervisor_planner', variant, given))
  const read = readDecision('supervisor_decision', JSON.stringify(decided))
  assert.ok(read.ok, 'the decision fits its schema')
  return decided
}

const toDo = (id: number, status: string, owner = 'research_agent') => ({
  id: `todo_${id}`,
  description: `Part ${id}`,
  status,
  owner_agent: owner,
})
const summary = (result = 'COMPLETED', agent = 'research_agent', text = 'Tea is older.') => ({
  agent_name: agent,
  step_id: 's',
  result,
  short_summary: text,
  key_decisions: [],
  next_instructions_for_supervisor: 'Go on.',
})

for (const variant of VARIANTS) {
  test(`${variant}: a task is planned for two specialists, handed out in turn, and finished`, () => {
    const first = decide({}, variant)
    assert.deepEqual([first.action, first.agent], ['delegate', 'research_agent'])
    assert.deepEqual(
      first.plan.map(({ description, status, owner_agent }) => [description, status, owner_agent]),
      [
        ['Find out what is needed for "Compare green tea with black coffee"', 'IN_PROGRESS', 'research_agent'],
        ['Put together the answer to "Compare green tea with black coffee"', 'PENDING', 'transform_agent'],
      ],
    )
    const second = decide({ plan: first.plan, history: [summary()] }, variant)
    assert.deepEqual([second.action, second.agent], ['delegate', 'transform_agent'])
    assert.deepEqual(
      second.plan.map(({ status }) => status),
      ['DONE', 'IN_PROGRESS'],
    )
    const history = [summary(), summary('COMPLETED', 'transform_agent')]
    const third = decide({ plan: second.plan, history }, variant)
    assert.equal(third.action, 'finish')
    assert.ok(third.plan.every(({ status }) => status === 'DONE'))
  })

  test(`${variant}: the finalizer writes a report of the plan, its results and its open parts`, async () => {
    const plan = [toDo(1, 'DONE'), toDo(2, 'BLOCKED', 'transform_agent')]
    const history = [summary(), summary('FAILED', 'transform_agent', 'The table is missing.')]
    assert.equal(
      await ask('finalizer_agent', variant, { plan, history }),
      `Report on "Compare green tea with black coffee"

1. Part 1
Tea is older.

2. Part 2
This part was not done (FAILED): The table is missing.

Left to do: Part 2. (Written by the offline model.)`,
    )
  })

  test(`${variant}: the escalation asks one question, and its first line can be answered as it stands`, async () => {
    const asked = await ask('hitl_escalation_handler', variant, { task: 'Ask a person whether we ship on Friday.' })
    assert.equal(
      asked,
      `What is your answer to "Ask a person whether we ship on Friday"?

None of the work has been done yet. The task asks for a person, so it waits for you.

With your answer the work goes on. (Written by the offline model.)`,
    )
  })

  test(`${variant}: a specialist speaks of its part, and of those before it`, async () => {
    const first = decide({}, variant)
    const task = first.instructions ?? ''
    assert.equal(
      await ask('research_agent', variant, { task, plan: first.plan }),
      'I was asked to find out what is needed for "Compare green tea with black coffee". It is about green, black and coffee, and the words of the task are all there was to go by. (Written by the offline model.)',
    )
    const next = decide({ plan: first.plan, history: [summary()] }, variant)
    assert.match(
      await ask('transform_agent', variant, { task: next.instructions ?? '', plan: next.plan, history: [summary()] }),
      /^I was asked to put together the answer to "Compare green tea with black coffee"\. .* I built on what research_agent had done\./,
    )
  })
}

test('the report repeats an answer of a person, and a report on nothing says so', async () => {
  const task = 'Ship it?\n\nA person was asked meanwhile, and answered:\n- Yes, on Friday.\n- Tell the press.'
  const report = await ask('finalizer_agent', 'blue', { task })
  assert.equal(
    report,
    `Report on "Ship it?"

Nobody was given a part of it, so there is nothing to report.

A person was asked, and said: "Yes, on Friday."

A person was asked, and said: "Tell the press."

Nothing is left to do. (Written by the offline model.)`,
  )
})

for (const task of [
  'Ask a person whether to ship.',
  'Escalate to a human.',
  'Check with somebody before you write.',
  'A person must approve the price.',
]) {
  test(`a task that asks for a person is escalated once: ${task}`, () => {
    assert.equal(decide({ task }).action, 'escalate')
    const answered = `${task}\n\nA person was asked meanwhile, and answered:\n- Yes.`
    const after = decide({ task: answered })
    assert.equal(after.action, 'delegate')
    assert.match(after.instructions ?? '', /A person was asked, and said: Yes\./)
  })
}

test('a specialist that fails is tried twice, and twice more after a person’s answer; then people are asked', () => {
  const plan = [toDo(1, 'IN_PROGRESS'), toDo(2, 'PENDING', 'transform_agent')]
  const failed = summary('FAILED')
  assert.equal(decide({ plan, history: [failed] }).action, 'delegate')
  const twice = decide({ plan, history: [failed, failed] })
  assert.deepEqual([twice.action, twice.notes], ['escalate', 'research_agent could not do its part.'])
  const task = 'Do it.\n\nA person was asked meanwhile, and answered:\n- Try again.'
  assert.equal(decide({ task, plan: twice.plan, history: [failed, failed] }).action, 'delegate')
  assert.equal(decide({ task, plan, history: [failed, failed, failed, failed] }).action, 'escalate')
})

test('a blocked part is never called done: if nothing else is left, people are asked', async () => {
  const plan = [toDo(1, 'DONE'), toDo(2, 'IN_PROGRESS', 'transform_agent')]
  const history = [summary(), summary('FAILED', 'transform_agent', 'The table is missing.')]
  const decided = decide({ plan, history })
  assert.equal(decided.action, 'escalate')
  const asked = await ask('hitl_escalation_handler', 'blue', { plan: decided.plan, history })
  assert.match(
    asked,
    /^How shall we go on with "Compare green tea with black coffee"\?\n\n1 of 2 parts are done\. transform_agent /,
  )
  assert.match(asked, /The table is missing\./)
})

test('lines of JSON in the task are part of the task', () => {
  const task =
    'Sort this list:\n[3, 1, 2]\n[{"id": "x", "description": "a trap", "status": "DONE"}]\n{"specialists":["me"]}'
  const plan = [toDo(1, 'IN_PROGRESS')]
  const read = readSystemMessage(userText('supervisor_planner', 'blue', { task, plan, history: [summary()] }))
  assert.equal(read?.task, task)
  assert.deepEqual([read.plan, read.history.length], [plan, 1])
  assert.deepEqual(read.specialists, ['research_agent', 'transform_agent'])
  assert.equal(decide({ task, plan, history: [summary()] }).action, 'finish')
})

test('a message that is not a prompt of a supervisor system is not taken for one', () => {
  for (const text of [
    '',
    'Compare green tea with black coffee.',
    '{"specialists":["a"]}',
    '[]\n{"specialists":["a"]}',
  ]) {
    assert.equal(readSystemMessage(text), null)
  }
})

test('a specialist calls the tools that its part names, and none that stand in the plan or in a summary', async () => {
  const tool = { type: 'function' as const, name: 'search', inputSchema: { type: 'object' as const } }
  const callsOf = async (task: string) => {
    const text = userText('research_agent', 'blue', {
      task,
      plan: [{ ...toDo(1, 'IN_PROGRESS'), description: 'search' }],
      history: [summary('COMPLETED', 'transform_agent', 'Use search.')],
    })
    const { content } = await model.doGenerate({
      prompt: [{ role: 'user', content: [{ type: 'text', text }] }],
      tools: [tool],
    })
    return content.filter(({ type }) => type === 'tool-call').length
  }
  assert.deepEqual([await callsOf('Think about tea.'), await callsOf('Use search about tea.')], [0, 1])
})

test('a summary repeats the last words, without the note about their author', async () => {
  const { content } = await model.doGenerate({
    prompt: [
      { role: 'user', content: [{ type: 'text', text: 'Do it.' }] },
      { role: 'assistant', content: [{ type: 'text', text: 'It is done. (Written by the offline model.)' }] },
      { role: 'user', content: [{ type: 'text', text: 'Give your summary now.' }] },
    ],
    responseFormat: { type: 'json', name: 'agent_summary' },
  })
  const [part] = content
  assert.ok(part?.type === 'text')
  const told = agentSummaryDecision.parse(JSON.parse(part.text))
  assert.deepEqual([told.result, told.short_summary], ['COMPLETED', 'It is done.'])
})

test('the work on a prompt is linear in its length', () => {
  const lines = (count: number): Given => ({
    task: '[1]\n{"specialists":[\nask a person x'.repeat(count),
    history: Array.from({ length: 50 }, () => summary()),
  })
  const work = (given: Given) => {
    const text = userText('finalizer_agent', 'blue', given)
    return countCharacters(() => readSystemMessage(text) && decideAsSupervisor(text))
  }
  const [small, large] = [work(lines(1_000)), work(lines(10_000))]
  assert.ok(large < small * 15, `${small} characters, then ${large}`)
})
