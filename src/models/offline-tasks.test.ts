// The tools that the offline model calls for a task, in the words in which tasks are put before their agents.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LanguageModelV4FunctionTool, LanguageModelV4Prompt } from '@ai-sdk/provider'
import { countCharacters } from '../../test/kit/count-characters.ts'
import { taskText } from '../org/task-text.ts'
import { createOfflineModel } from './offline-model.ts'
import { readTaskMessage } from './offline-tasks.ts'

const model = createOfflineModel('offline')
const tool = (name: string, required: string[] = []): LanguageModelV4FunctionTool => {
  const properties = Object.fromEntries(required.map((key) => [key, { type: 'string' as const }]))
  return { type: 'function', name, inputSchema: { type: 'object', properties, required } }
}
const tools = [tool('count'), tool('look_up', ['q']), tool('ask_human', ['question']), tool('unlock')]

type Text = Parameters<typeof taskText>
const textOf = (task: Partial<Text[0]>, outcomes: Partial<Text[1]> = {}): string =>
  taskText(
    { title: 'A task', description: '', advice: [], error_message: null, ...task },
    { dependencies: [], subtasks: [], calls: [], ...outcomes },
  )

/** The next call after these calls failed or succeeded, or the text of the answer. */
async function next(said: string, earlier: readonly ['ok' | 'failed', string][] = [], system = 'You help.') {
  const prompt: LanguageModelV4Prompt = [
    { role: 'system', content: system },
    { role: 'user', content: [{ type: 'text', text: said }] },
    ...earlier.flatMap(([outcome, toolName], place): LanguageModelV4Prompt => {
      const toolCallId = `call ${place}`
      const output = { type: outcome === 'ok' ? 'text' : 'error-text', value: 'x' } as const
      return [
        { role: 'assistant', content: [{ type: 'tool-call', toolCallId, toolName, input: {} }] },
        { role: 'tool', content: [{ type: 'tool-result', toolCallId, toolName, output }] },
      ]
    }),
  ]
  const { content } = await model.doGenerate({ prompt, tools })
  const [part] = content
  if (part?.type === 'tool-call') return `${part.toolName} ${part.input}`
  return part?.type === 'text' ? part.text : assert.fail()
}

const outcome = (title: string, result: string) => ({ task_id: 't', title, status: 'completed' as const, result })

test('the words of a task name its tools; results, parts and errors that it quotes do not', async () => {
  assert.equal(await next(textOf({ title: 'Please count' })), 'count {}')
  assert.equal(await next(textOf({ description: 'Then count.' })), 'count {}')
  const told: Text[1] = {
    dependencies: [outcome('count', 'ask a human')],
    subtasks: [outcome('unlock', 'count it')],
    calls: [],
  }
  const said = textOf({ error_message: 'count failed: ask a human' }, told)
  assert.match(said, /builds on[\s\S]*became of its parts[\s\S]*last attempt failed/)
  assert.match(await next(said), /^The task "A task" is done\. I built on "count"\./)
})

test('the answer to a call for help may name a tool, and the agent that gave it is named', async () => {
  const said = textOf({
    advice: [{ from: 'Ada', text: 'Try look_up {"q": "rain"} first.' }],
    error_message: 'count it',
  })
  assert.equal(await next(said), 'look_up {"q":"rain"}')
  assert.deepEqual(readTaskMessage(said)?.advisers, ['Ada'])
})

test('a tool that is spoken of several times without arguments is one call', async () => {
  const said = textOf({ title: 'look_up rain', description: 'When look_up is done, look_up gives a list.' })
  const first = await next(said)
  assert.match(first, /^look_up /)
  const prompt: LanguageModelV4Prompt = [
    { role: 'user', content: [{ type: 'text', text: said }] },
    {
      role: 'assistant',
      content: [{ type: 'tool-call', toolCallId: 'c', toolName: 'look_up', input: JSON.parse(first.slice(8)) }],
    },
    {
      role: 'tool',
      content: [{ type: 'tool-result', toolCallId: 'c', toolName: 'look_up', output: { type: 'text', value: 'wet' } }],
    },
  ]
  const { content } = await model.doGenerate({ prompt, tools })
  assert.equal(content[0]?.type, 'text')
})

test('a call that failed is made again only if the task says "until it works"', async () => {
  const [once, insisting] = [textOf({ title: 'count' }), textOf({ title: 'count until it works' })]
  assert.match(await next(once, [['failed', 'count']]), /not all went well\. count failed with "x"/)
  assert.equal(await next(insisting, [['failed', 'count']]), 'count {}')
  const again = await next(insisting, [
    ['failed', 'count'],
    ['ok', 'count'],
  ])
  assert.match(again, /count gave "x"/)
})

const PLEA = {
  title: 'Agent Otto is stuck',
  description:
    'Otto is blocked on the task "count".\n\nThe last error: count failed: ask a human\n\nComplete this task with advice.',
}

test('an agent that is asked to help a stuck agent follows its own prompt', async () => {
  const said = textOf(PLEA)
  assert.equal(await next(said, [], 'If somebody is stuck, call unlock.'), 'unlock {}')
  assert.match(await next(said), /^I looked at what keeps Otto from the task "count"\. The error was/)
  assert.match(await next(said, [['ok', 'unlock']], 'call unlock'), /unlock gave "x"\. The way should be free now/)
  assert.equal(await next(textOf({ ...PLEA, title: 'Agents are stuck, count them' })), 'count {}')
})

const hostile: Record<string, string> = {
  headings: `Task: a${'\nThe last attempt failed: \nResults that this task builds on:\n'.repeat(15_000)}`,
  'names of a tool': `Task: a\n\n${'count '.repeat(160_000)}`,
  'calls for help': `Task: Agent a is stuck\n\n${'a is blocked on the task "'.repeat(40_000)}`,
}
for (const [what, text] of Object.entries(hostile)) {
  test(`a megabyte is read in one pass: ${what}`, () => {
    const prompt: LanguageModelV4Prompt = [{ role: 'user', content: [{ type: 'text', text }] }]
    const work = countCharacters(() => model.doGenerate({ prompt, tools }))
    assert.ok(work <= 4_000_000, `${work} characters`)
  })
}
