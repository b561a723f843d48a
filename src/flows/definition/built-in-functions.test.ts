import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '../../kernel/log.ts'
import type { ToolContext } from '../../kernel/tool.ts'
import { builtInDescriptions, CONDENSE_CHARACTERS, createBuiltInFunctions } from './built-in-functions.ts'
import type { FunctionContext } from './function-context.ts'

const context = (signal = new AbortController().signal): ToolContext => ({
  signal,
  key: 'k',
  attempt: 1,
  run_id: 'r',
  project_id: 'p',
  log: silentLog,
  emit: () => {},
})

/** Async, so that a function that throws rejects. */
async function call(
  name: string,
  input: unknown,
  answer: (prompt: string) => string = (text) => text,
  ctx = context(),
) {
  const run = createBuiltInFunctions({ ask: async (_project, prompt) => answer(prompt) }).get(name)
  if (!run) throw new Error(`there is no ${name}`)
  return run(input as never, ctx) // each function reads what it is given
}

const plain: [name: string, input: unknown, output: unknown][] = [
  ['muster.identity', { a: 1 }, { a: 1 }],
  ['muster.identity', undefined, null],
  ['muster.is_larger', { of: [1, 2, 3], than: 2 }, true],
  ['muster.is_larger', { of: [1, 2], than: 2 }, false],
  ['muster.is_larger', { of: 'abc', than: 2 }, true],
  ['muster.is_larger', { of: '', than: 0 }, false],
  ['muster.is_larger', { of: null, than: 0 }, false],
  ['muster.chunk', { of: [1, 2, 3, 4, 5], size: 2 }, [[1, 2], [3, 4], [5]]],
  ['muster.chunk', { of: [], size: 2 }, []],
  ['muster.chunk', { of: '', size: 2 }, []],
  ['muster.chunk', { of: 'one two three', size: 8 }, ['one two ', 'three']],
  ['muster.chunk', { of: 'one\ntwo\nthree', size: 8 }, ['one\ntwo\n', 'three']],
  ['muster.chunk', { of: 'abcdefg', size: 3 }, ['abc', 'def', 'g']],
  ['muster.chunk', { of: 'a😀b😀', size: 2 }, ['a', '😀', 'b', '😀']],
  ['muster.chunk', { of: '😀😀', size: 1 }, ['😀', '😀']],
]
for (const [name, input, output] of plain) {
  test(`${name} of ${JSON.stringify(input)} is ${JSON.stringify(output)}`, async () => {
    assert.deepEqual(await call(name, input), output)
  })
}

test('every built-in function has a description', () => {
  const functions = createBuiltInFunctions({ ask: async () => '' })
  assert.deepEqual(Object.keys(builtInDescriptions), [...functions.keys()])
  for (const name of functions.keys()) assert.match(name, /^muster\.[a-z_]+$/)
})

test('ask shows the model the input below the prompt, objects as JSON; without an input only the prompt', async () => {
  assert.equal(await call('muster.ask', { prompt: 'Why?', input: { a: 1 } }), 'Why?\n\n<input>\n{"a":1}\n</input>')
  assert.equal(await call('muster.ask', { prompt: 'Why?', input: '' }), 'Why?')
  assert.equal(await call('muster.ask', { prompt: 'Why?' }), 'Why?')
})

test('ask is told of which project, flow run and leaf, and under which signal', async () => {
  const { signal } = new AbortController()
  let told: unknown[] = []
  const functions = createBuiltInFunctions({
    ask: async (...given) => {
      told = given
      return ''
    },
  })
  const ofLeaf: FunctionContext = { ...context(signal), leafId: 'l', scope: 'r:l:3' }
  await functions.get('muster.ask')?.({ prompt: 'x' } as never, ofLeaf) // it reads what it is given
  const of = { projectId: 'p', flowRunId: 'r', leafId: 'l', whileIdle: undefined }
  assert.deepEqual(told, [{ ...of, item: undefined }, 'x', signal])
  await functions.get('muster.ask_each')?.({ prompt: 'x', items: ['', ''] } as never, ofLeaf)
  assert.deepEqual(told, [{ ...of, item: { call: 'r:l:3', place: 1 } }, 'x', signal])
})

test('ask_each asks about each item, or only about the items of its share', async () => {
  const items = ['a', 'b', 'c', 'd', 'e']
  const count = (prompt: string): string => /\n(.)\n/.exec(prompt)?.[1] ?? ''
  assert.deepEqual(await call('muster.ask_each', { prompt: 'p', items }, count), items)
  const shares = await Promise.all(
    [0, 1, 2].map((place) => call('muster.ask_each', { prompt: 'p', items, share: { of: 3, place } }, count)),
  )
  assert.deepEqual(shares.flat(), items)
  assert.deepEqual(await call('muster.ask_each', { prompt: 'p', items: ['a'], share: { of: 3, place: 2 } }), [])
  assert.deepEqual(await call('muster.ask_each', { prompt: 'p', items: '' }), [])
})

test('the model is not asked again after an abort', async () => {
  const controller = new AbortController()
  let calls = 0
  const answer = (): string => {
    calls++
    controller.abort()
    return ''
  }
  const work = call('muster.ask_each', { prompt: 'p', items: ['a', 'b'] }, answer, context(controller.signal))
  await assert.rejects(work, /abort/)
  assert.equal(calls, 1)
})

test('ask_list reads one entry per line, without numbers and bullets, and stops at the wanted number', async () => {
  const answer = '1. one\n\n- two\n* three\n10) four\n  2024 was a year\nsix'
  const entries = await call('muster.ask_list', { prompt: 'p', most: 5 }, () => answer)
  assert.deepEqual(entries, ['one', 'two', 'three', 'four', '2024 was a year'])
})

test('condense asks once for items that fit one prompt, and leaves out failed items', async () => {
  const prompts: string[] = []
  const answer = (prompt: string): string => String(prompts.push(prompt))
  assert.equal(await call('muster.condense', { prompt: 'p', items: ['a', null, { b: 1 }] }, answer), '1')
  assert.deepEqual(prompts, ['p\n\n<input>\na\n\n---\n\n{"b":1}\n</input>'])
})

test('condense works in rounds on items that do not fit one prompt, and loses none', async () => {
  const marks = Array.from({ length: 1_000 }, (_, place) => `<${place}>`)
  const prompts: string[] = []
  const answer = (prompt: string): string => {
    prompts.push(prompt)
    return (prompt.match(/<\d+>/g) ?? []).join('')
  }
  const items = marks.map((mark) => `${mark}${'x'.repeat(200)}`)
  assert.equal(await call('muster.condense', { prompt: 'p', items }, answer), marks.join(''))
  assert.ok(prompts.length > 2)
  for (const prompt of prompts) assert.ok(prompt.length <= CONDENSE_CHARACTERS + 100)
})

test('condense gives up if the answers stay as long as the texts', async () => {
  const items = ['x'.repeat(CONDENSE_CHARACTERS), 'y'.repeat(CONDENSE_CHARACTERS)]
  await assert.rejects(call('muster.condense', { prompt: 'p', items }), /gave up/)
})

const refused: [name: string, input: unknown, said: string][] = [
  ['muster.ask', { input: 1 }, 'prompt is missing.'],
  ['muster.is_larger', { than: 1 }, 'of is missing.'],
  ['muster.is_larger', { of: 5, than: 1 }, 'of must be a text or a list.'],
  ['muster.chunk', { of: 'x', size: 0 }, 'size must be at least 1.'],
  ['muster.ask_each', { prompts: 'x', items: [] }, 'its argument has no field "prompts". Did you mean "prompt"?'],
  [
    'muster.ask_each',
    { prompt: 'x', items: [1], share: { of: 3, place: 3 } },
    'share.place must be below of: the first part is 0.',
  ],
  ['muster.ask', 'x', 'its argument must be an object, not a text.'],
]
for (const [name, input, said] of refused) {
  test(`a refusal of ${name} says: ${said}`, async () => {
    await assert.rejects(call(name, input), ({ message }: Error) => {
      assert.ok(message.startsWith(`${name} cannot work with its arguments: `) && message.endsWith(said), message)
      return true
    })
  })
}

test('condense refuses an empty list', async () => {
  await assert.rejects(call('muster.condense', { prompt: 'p', items: [] }), /nothing to put together/)
})
