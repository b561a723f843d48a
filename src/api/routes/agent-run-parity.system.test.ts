// Streaming parity: for fifty tasks, ten of which have their stream cut by the provider, the text and the end that a
// reader gets equal the answer without a stream. The test covers both forms, in the request itself and in the events
// read afterwards.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Final, FORMS, finalOf, isToken, readEvents, streamTask, textOf } from '../../../test/kit/agent-stream.ts'
import { createCutModel } from '../../../test/kit/cut-model.ts'
import { createSupervisor, delegate, finish, summary } from '../../../test/kit/supervisor.ts'

import type { ModelRequest } from '../../kernel/model-call.ts'

interface Case {
  what: string
  /** The specialists that are asked before the end. */
  rounds: string[]
  action: 'finish' | 'escalate'
  /** The pieces of the text, of the finalizer or of the question. */
  said: string[]
  /** The finalizer's text before each cut of the connection. */
  cut: string[][]
  /** The finalizer fails after its text. */
  fails?: { isRetryable: boolean }
}

const words = (text: string): string[] => text.split(/(?<= )/)
const long = words('A long answer has many words. '.repeat(400))
const emoji = [...'👩‍🚀 – Größe, 日本語, \u2028 and 🇫🇷'.split('')]
const TEXTS: [string, string[]][] = [
  ['one piece', ['Paris is the capital of France.']],
  ['words', words('The quick brown fox jumps over the lazy dog.')],
  ['halves of surrogate pairs', emoji],
  ['lines and JSON', ['# Title\n\n', '- "one"\r\n', '- {"event_type":"final"}\n\n', 'data: x\n\n: end']],
  ['a long text', long],
  ['a repeated piece', ['ha', 'ha', 'ha', 'ha']],
  ['characters that no database can store', ['a\0b', ' c\ud800', ' d']],
  ['spaces only at its ends', ['  ', 'indented', '\n']],
]

const cases: Case[] = [
  ...TEXTS.flatMap(([what, said], place): Case[] => [
    { what, rounds: [], action: 'finish', said, cut: [] },
    { what: `${what}, after specialists`, rounds: AGENTS(place), action: 'finish', said, cut: [] },
    { what: `${what}, as a question`, rounds: AGENTS(place).slice(1), action: 'escalate', said, cut: [] },
  ]),
  ...[1, 2, 3, 4, 5, 6, 7, 8].map(
    (number): Case => ({
      what: `answer ${number} of eight`,
      rounds: AGENTS(number),
      action: 'finish',
      said: words(`Number ${number}. `.repeat(number * 7)),
      cut: [],
    }),
  ),
  ...[true, false].flatMap((isRetryable): Case[] =>
    ([[], ['Half an '], ['Half', ' an']] as string[][]).map((said) => ({
      what: `a finalizer that ${isRetryable ? 'stays away' : 'fails'} after ${said.length} pieces`,
      rounds: [],
      action: 'finish',
      said,
      cut: [],
      fails: { isRetryable },
    })),
  ),
  { what: 'a question after a summary', rounds: ['transform_agent'], action: 'escalate', said: ['Which?'], cut: [] },
  { what: 'a question of many words', rounds: [], action: 'escalate', said: long, cut: [] },
  ...(
    [
      ['at once', [[]], ['The answer.']],
      ['after a word', [['The ']], ['The ', 'answer.']],
      ['after all but the end', [['The ', 'answer.']], ['The ', 'answer.']],
      ['after another text', [['I think ', 'that ']], ['The ', 'answer.']],
      ['after a longer text', [['The answer is long, ', 'and then it is gone.']], ['The answer.']],
      ['twice', [['The '], ['The answer ', 'of ']], ['The ', 'answer.']],
      ['three times', [['One '], ['Two '], ['Three ']], ['Four ', 'it is.']],
      ['four times', [['a'], ['ab'], ['abc'], ['abcd']], ['abcde']],
      ['within a surrogate pair', [['🇫', '🇷', '👩']], ['👩', '‍', '🚀']],
      ['in a long text', [long.slice(0, 900)], long],
    ] as [string, string[][], string[]][]
  ).map(
    ([what, cut, said]): Case => ({ what: `a stream that is cut ${what}`, rounds: [], action: 'finish', said, cut }),
  ),
]

function AGENTS(place: number): string[] {
  return place % 3 === 0 ? ['research_agent', 'transform_agent', 'research_agent'] : ['transform_agent']
}

const nameOf = (place: number): string => `case-${String(place).padStart(2, '0')}-`
const caseIn = (text: string): Case =>
  cases[Number(/case-(\d\d)-/.exec(text)?.[1])] ?? assert.fail(`no case is named in ${text.slice(0, 200)}`)
const caseOf = ({ prompt }: ModelRequest): Case => caseIn(JSON.stringify(prompt))

/** The tasks are given one after the other, so that the decisions about each can be counted. */
let decisions = 0
const parity = (async () => {
  const cut = await createCutModel((body) => {
    const { cut: before, said } = caseIn(body)
    return { cut: before, whole: said }
  })
  const told = (request: ModelRequest) => {
    const { said, fails } = caseOf(request)
    return { textParts: said, text: '', ...(fails ? { fail: { message: 'Gone.', retryAfterMs: null, ...fails } } : {}) }
  }
  const kit = await createSupervisor(
    {
      supervisor: (request) => {
        const { rounds, action } = caseOf(request)
        const next = rounds[decisions++]
        return next ? delegate(next) : { ...finish(), action }
      },
      summary: { research_agent: summary('COMPLETED', 'Found.') },
      finalizer: told,
      escalation: told,
    },
    { firstBackoffMs: 1, models: new Map([['cut', cut]]) },
  )
  const finalizer = { prompt_id: 'finalizer_agent', model: { provider: 'test', name: 'cut', max_output_tokens: 100 } }
  const set = await kit.put('cut', { ...kit.config, finalizer, traffic: 0 })
  assert.equal(set.status, 200, set.text)
  for (const id of [
    'supervisor_planner',
    'finalizer_agent',
    'hitl_escalation_handler',
    'transform_agent',
    'research_agent',
  ]) {
    const messages = [{ role: 'user', content: '{{USER_INPUT}}' }]
    await kit.call(`PUT ${kit.base}/prompts/${id}/variants/cut`, { body: { messages } })
  }
  return { kit, cut }
})()

/** The part of an answer that is the same for two runs of one task. */
const comparable = ({
  status,
  output,
  error,
}: Omit<Final, 'run_id' | 'error'> & { error?: Final['error'] | undefined }) => ({
  status,
  output,
  error: error ? { code: error.code, message: error.message } : null,
})

test('the test has fifty tasks, and the streams of ten of them are cut', () => {
  assert.equal(cases.length, 50)
  assert.equal(cases.filter(({ cut }) => cut.length > 0).length, 10)
})

cases.forEach((each, place) => {
  // One case in four stands for its kind in the first tier.
  test(`Streaming parity ${place + 1}: ${each.what}`, async () => {
    const { kit, cut } = await parity
    const options = each.cut.length > 0 ? { system_variant: 'cut' } : {}
    const cutsBefore = cut.cuts()
    decisions = 0
    const { status, body } = await kit.run(nameOf(place), { options })
    const plain = body.error ? (await kit.read(String(body.error.details.run_id))).body : body
    assert.equal(status, each.fails?.isRetryable ? 503 : 200)
    const expected = each.fails ? 'FAILED' : each.action === 'finish' ? 'DONE' : 'ESCALATE'
    assert.equal(plain.result.status, expected)
    const said = each.said.join('').toWellFormed().replaceAll('\0', '\ufffd')
    assert.equal(plain.result.output?.content ?? null, each.fails ? null : said)
    for (const [form, accept] of Object.entries(FORMS)) {
      decisions = 0
      const { headers, events } = await streamTask(kit, nameOf(place), { accept, options })
      const runId = headers['x-run-id'] ?? assert.fail()
      for (const told of [events, ...(await readBoth(kit, runId))]) {
        const final = finalOf(told)
        assert.deepEqual(comparable(final), comparable(plain.result), form)
        if (expected === 'DONE') assert.equal(textOf(told), plain.result.output?.content, form)
        if (expected === 'ESCALATE') assert.deepEqual(told.filter(isToken), [], 'tokens are the finalizer’s')
        assert.equal(final.run_id, runId)
        for (const { event_type: type, data } of told) {
          if (type === 'status_update') assert.equal(data.run_id, runId)
        }
      }
    }
    assert.equal(cut.cuts() - cutsBefore, 3 * each.cut.length, 'the provider has cut all three runs equally often')
  })
})

const readBoth = (kit: Parameters<typeof readEvents>[0], runId: string) =>
  Promise.all(Object.values(FORMS).map((accept) => readEvents(kit, runId, { accept })))
