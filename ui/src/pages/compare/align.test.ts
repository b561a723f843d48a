import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Run } from '../../../../src/kernel/run.ts'
import type { Step } from '../../api/shapes.ts'
import { alignCalls, alignTurns, isSame, turnsOf, withInherited } from './align.ts'

const AT = { started_at: '2026-01-01T00:00:00Z', duration: 10 }
const usage = { input_tokens: 1, output_tokens: 1, estimated: false, cost_usd: null }

type Told = { say: string; calls?: [name: string, args: unknown][]; step?: number }

/** The steps of a run that says and calls this. */
function stepsOf(told: Told[]): Step[] {
  let seq = 0
  return told.flatMap(({ say, calls = [], step: given }, place): Step[] => {
    const step = given ?? place + 1
    const tool_calls = calls.map(([name, args], index) => ({ id: `${step}.${index}`, name, args }))
    const common = { step, ...AT }
    return [
      { kind: 'model', seq: ++seq, text: say, tool_calls, finish_reason: 'stop', usage, ...common },
      ...tool_calls.map(
        ({ id, name, args }): Step => ({
          kind: 'tool',
          seq: ++seq,
          call_id: id,
          name,
          args,
          result: 'ok',
          is_error: false,
          blocked: null,
          ...common,
        }),
      ),
    ]
  })
}

const turns = (...told: Told[]) => turnsOf(stepsOf(told))
const search: [string, unknown] = ['search', { q: 'rose' }]

/** The texts of each row. */
const rowsOf = (left: Told[], right: Told[]): [string | null, string | null][] =>
  alignTurns(turns(...left), turns(...right)).map((row) => [
    row.left?.model.text ?? null,
    row.right?.model.text ?? null,
  ])

test('a turn is a model call with the tool calls of its step', () => {
  const [first, second] = turns({ say: 'I look.', calls: [search, ['get', { id: 1 }]] }, { say: 'Done.' })
  assert.deepEqual(
    first?.tools.map(({ name }) => name),
    ['search', 'get'],
  )
  assert.deepEqual(second?.tools, [])
})

test('runs that are equal stand row by row', () => {
  const told = [{ say: 'a', calls: [search] }, { say: 'b' }]
  assert.deepEqual(rowsOf(told, told), [
    ['a', 'a'],
    ['b', 'b'],
  ])
})

test('an additional step stands alone, and the steps after it are paired again', () => {
  assert.deepEqual(
    rowsOf(
      [{ say: 'look', calls: [search] }, { say: 'answer' }],
      [{ say: 'look', calls: [search] }, { say: 'again', calls: [['get', {}]] }, { say: 'another answer' }],
    ),
    [
      ['look', 'look'],
      [null, 'again'],
      ['answer', 'another answer'],
    ],
  )
})

test('steps with the same tools are paired before steps with others', () => {
  assert.deepEqual(
    rowsOf(
      [
        { say: 'a', calls: [['get', {}]] },
        { say: 'b', calls: [search] },
      ],
      [{ say: 'c', calls: [['search', { q: 'tulip' }]] }],
    ),
    [
      ['a', null],
      ['b', 'c'],
    ],
  )
})

test('an empty run leaves the other one alone', () => {
  assert.deepEqual(rowsOf([], [{ say: 'a' }]), [[null, 'a']])
  assert.deepEqual(rowsOf([{ say: 'a' }], []), [['a', null]])
  assert.deepEqual(rowsOf([], []), [])
})

test('runs of thousands of steps are aligned at once', () => {
  const long = Array.from({ length: 4_000 }, (_, place) => ({ say: `${place}` }))
  const other = long.map(({ say }) => ({ say: `other ${say}` }))
  const begun = performance.now()
  assert.equal(rowsOf(long, other).length, 4_000)
  assert.equal(rowsOf(long, [...long, { say: 'more' }]).length, 4_001)
  assert.ok(performance.now() - begun < 2_000)
})

test('a fork shows the steps that it took over, up to the step it was forked after', () => {
  const origin = {
    run: { id: 'a', resumed_from: null, forked_from: null } as unknown as Run,
    turns: turns({ say: '1' }, { say: '2' }, { say: '3' }),
  }
  const fork = {
    run: { id: 'b', resumed_from: null, forked_from: 'a', trigger: { type: 'fork', after_step: 1 } } as unknown as Run,
    turns: turns({ say: 'two', step: 2 }),
  }
  const whole = withInherited(fork, origin)
  assert.deepEqual(
    whole.map(({ model, isInherited }) => [model.text, isInherited]),
    [
      ['1', true],
      ['two', false],
    ],
  )
  assert.deepEqual(withInherited(origin, fork), origin.turns)
})

test('a resumed run takes over all steps of the run that paused', () => {
  const origin = {
    run: { id: 'a', resumed_from: null, forked_from: null } as unknown as Run,
    turns: turns({ say: '1' }, { say: '2' }),
  }
  const resumed = {
    run: { id: 'b', resumed_from: 'a', forked_from: null, trigger: { type: 'resume' } } as unknown as Run,
    turns: turns({ say: '3', step: 3 }),
  }
  assert.deepEqual(
    withInherited(resumed, origin).map(({ model }) => model.text),
    ['1', '2', '3'],
  )
})

test('calls are paired by their names in order, and calls of different tools are not', () => {
  const of = (...calls: [string, unknown][]) => turns({ say: '', calls })[0]?.tools ?? []
  const rows = alignCalls(of(['get', { id: 1 }], ['search', {}]), of(['search', {}], ['delete', {}]))
  assert.deepEqual(
    rows.map(({ left, right }) => [left?.name ?? null, right?.name ?? null]),
    [
      ['get', null],
      ['search', 'search'],
      [null, 'delete'],
    ],
  )
})

test('the order of keys makes no difference', () => {
  assert.ok(isSame({ a: 1, b: [{ c: 1, d: 2 }] }, { b: [{ d: 2, c: 1 }], a: 1 }))
  assert.ok(!isSame({ a: 1 }, { a: 2 }))
  assert.ok(!isSame([1, 2], [2, 1]))
})
