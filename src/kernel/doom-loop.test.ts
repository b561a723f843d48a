import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type CountedCall, countCalls, type DoomLoopCount, type DoomLoopVerdict, noCallsYet } from './doom-loop.ts'

const limits = { warn: 3, stop: 5 }

// A letter is a call, a word of letters one step, `p` a poller, `x` malformed arguments, `u` an unknown tool; a capital
// letter is a call with an effect, `P` a poller with one. In the labels `.` runs, `-` is surplus, `!` is refused, `#`
// stops the run; one mark per call.
const table: [steps: string, labels: string][] = [
  ['a', '.'],
  ['a a', '. .'],
  ['a a a', '. . !'],
  ['a a a a', '. . ! !'],
  ['a a a a a', '. . ! ! #'],
  ['a b a b a b a b', '. . . . . . . .'],
  ['a a b a a b a a', '. . . . . . . .'],
  ['a a b a a a', '. . . . . !'],
  ['a a a b', '. . ! .'],
  ['a a a b a a', '. . ! . . .'],
  ['a a a b a a a', '. . ! . . . !'],
  ['a a a a b a a a a a', '. . ! ! . . . ! ! #'],
  ['a b b b', '. . . !'],
  ['a b b b b b', '. . . ! ! #'],
  ['a b c d e f', '. . . . . .'],
  ['ab ab ab ab', '.. .. .. ..'],
  ['aa', '..'],
  ['aaa', '...'],
  ['aaaaa', '.....'],
  ['aa aa', '.. ..'],
  ['aa aa aa', '.. .. !!'],
  ['aa aa aa aa aa', '.. .. !! !! ##'],
  ['aab', '...'],
  ['a aab', '. ...'],
  ['ab b b', '.. . !'],
  ['ab b b b b', '.. . ! ! #'],
  ['aba a', '... .'],
  ['aba b b', '... . !'],
  ['ab ba', '.. ..'],
  ['ab ba ab', '.. .. ..'],
  ['ab bb b', '.. .. !'],
  ['p p p p p p p', '. . . . . . .'],
  ['a a p a a', '. . . . .'],
  ['a a p a a a', '. . . . . !'],
  ['a a a p a', '. . ! . .'],
  ['p a a a', '. . . !'],
  ['ap ap ap', '.. .. ..'],
  ['pa pa pa', '.. .. ..'],
  ['pa a a', '.. . !'],
  ['x x x', '. . !'],
  ['x x x x x', '. . ! ! #'],
  ['x a x x', '. . . .'],
  ['u u u u u', '. . ! ! #'],
  ['u u a u u', '. . . . .'],
  ['a x u a x u a x u', '. . . . . . . . .'],
  ['a a a c a a a c a a a', '. . ! . . . ! . . . !'],
  ['bbb bb b', '... .. !'],
  ['abc c c', '... . !'],
  ['a a b b b b b', '. . . . ! ! #'],
  ['A', '.'],
  ['AA', '..'],
  ['AAA', '..-'],
  ['AAAAAA', '..----'],
  ['AAA AAA', '..- ..-'],
  ['AAA AAA AAA', '..- ..- !!!'],
  ['AAA A A A A', '..- . ! ! #'],
  ['ABABAB', '....--'],
  ['ABAaB', '.....'],
  ['AAABBB', '..-..-'],
  ['aaaAAA', '.....-'],
  ['PPP', '..-'],
  ['A A A', '. . !'],
]

test('there are at least 40 labelled sequences', () => assert.ok(table.length >= 40, `${table.length}`))

for (const [steps, labels] of table) {
  test(`${steps}: ${labels}`, () => assert.equal(play(steps, limits), labels))
}

test('a reference counter over all short sequences of two calls agrees', () => {
  for (let length = 1; length <= 9; length++) {
    for (let bits = 0; bits < 2 ** length; bits++) {
      const calls = Array.from({ length }, (_, at) => ((bits >> at) & 1 ? 'a' : 'b'))
      assert.equal(play(calls.join(' '), limits), reference(calls))
    }
  }
})

test('the order of arguments and the text of a number do not make another call', () => {
  const first = countCalls(
    noCallsYet,
    [{ name: 't', args: { a: 1, b: [{ c: 1, d: 2 }] }, isPoller: false, hasEffect: false }],
    limits,
  )
  const second = countCalls(
    first.after,
    [{ name: 't', args: { b: [{ d: 2, c: 1.0 }], a: 1 }, isPoller: false, hasEffect: false }],
    limits,
  )
  assert.equal(second.after.count, 2)
})

test('the same arguments to another tool, or as raw text, are another call', () => {
  const first = countCalls(noCallsYet, [{ name: 't', args: { a: 1 }, isPoller: false, hasEffect: false }], limits)
  for (const call of [
    { name: 'other', args: { a: 1 } },
    { name: 't', args: '{"a":1}' },
    { name: 't', args: { a: '1' } },
  ]) {
    assert.equal(countCalls(first.after, [{ ...call, isPoller: false, hasEffect: false }], limits).after.count, 1)
  }
})

test('the counter continues from the state that a journal holds', () => {
  const kept: DoomLoopCount = JSON.parse(JSON.stringify(countCalls(noCallsYet, [call('a'), call('b')], limits).after))
  const { verdicts } = countCalls(countCalls(kept, [call('b')], limits).after, [call('b')], limits)
  assert.deepEqual(verdicts, ['refuse'])
})

test('other limits are obeyed', () => {
  assert.equal(play('a a a a', { warn: 2, stop: 3 }), '. ! # #')
  assert.equal(play('a a a', { warn: 2, stop: 2 }), '. # #')
})

function play(steps: string, withLimits: { warn: number; stop: number }): string {
  const mark: Record<DoomLoopVerdict, string> = { run: '.', surplus: '-', refuse: '!', stop: '#' }
  let count = noCallsYet
  return steps
    .split(' ')
    .map((step) => {
      const { after, verdicts } = countCalls(count, [...step].map(call), withLimits)
      count = after
      return verdicts.map((verdict) => mark[verdict]).join('')
    })
    .join(' ')
}

function call(letter: string): CountedCall {
  const hasEffect = letter !== letter.toLowerCase()
  if (letter.toLowerCase() === 'p') return { name: 'poll', args: {}, isPoller: true, hasEffect }
  const plain = { isPoller: false, hasEffect }
  if (letter === 'x') return { name: 'tool', args: '{"broken":', ...plain }
  if (letter === 'u') return { name: 'no_such_tool', args: {}, ...plain }
  return { name: 'tool', args: { letter }, ...plain }
}

function reference(calls: readonly string[]): string {
  let run = 0
  return calls
    .map((letter, at) => {
      run = letter === calls[at - 1] ? run + 1 : 1
      return run >= 5 ? '#' : run >= 3 ? '!' : '.'
    })
    .join(' ')
}
