import assert from 'node:assert/strict'
import { test } from 'node:test'
import { didYouMean } from './nearest.ts'

const guess = (name: string, candidates: Iterable<string>): string | null =>
  /^ Did you mean "(.+)"\?$/.exec(didYouMean(name, candidates))?.[1] ?? null

const tools = ['object_create', 'object_search', 'object_get', 'http_fetch', 'spawn_agent', 'ask_human']

const cases: [name: string, candidates: string[], expected: string | null][] = [
  ['object_serch', tools, 'object_search'],
  ['object_saerch', tools, 'object_search'],
  ['objectSearch', tools, 'object_search'],
  ['OBJECT-GET', tools, 'object_get'],
  ['htpfetch', tools, 'http_fetch'],
  ['inputs', ['timeout', 'input', 'max_steps'], 'input'],
  ['grene', ['blue', 'green'], 'green'],
  ['efect', ['effect'], 'effect'],
  ['askhumna', tools, 'ask_human'],
  ['delete_everything', tools, null],
  ['nix', tools, null],
  ['', tools, null],
  ['a', ['b', 'c'], null],
  ['ab', ['ac'], null],
  ['cat', ['dog', 'bat', 'cab'], 'bat'],
  ['input', ['inputs', 'input'], null],
  ['serching', ['searching', 'serching_all'], 'searching'],
  ['Ünïcode', ['ünicode'], 'ünicode'],
]

for (const [name, candidates, expected] of cases) {
  test(`of ${candidates.length} names "${name}" is nearest to ${expected}`, () => {
    assert.equal(guess(name, candidates), expected)
  })
}

test('the guess is a sentence of its own, or nothing', () => {
  assert.equal(didYouMean('object_serch', tools), ' Did you mean "object_search"?')
  assert.equal(didYouMean('nothing like it', tools), '')
})

test('long names and long lists take bounded work', () => {
  const long = 'a'.repeat(1_000_000)
  assert.equal(guess(long, [`${long}b`, long]), null)
  assert.equal(guess('aaaaaa', [long, 'aaaaab']), 'aaaaab')
  let given = 0
  const endless = function* (): Generator<string> {
    for (;;) yield `${'x'.repeat(150)}${given++}`
  }
  assert.equal(guess('y'.repeat(150), endless()), null)
  assert.ok(given < 10_000, `${given} names were looked at`)
})
