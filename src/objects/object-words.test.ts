import assert from 'node:assert/strict'
import { test } from 'node:test'
import { countCharacters } from '../../test/kit/count-characters.ts'
import { objectWords, wordsQuery } from './object-words.ts'

test('a script without spaces is found from every character on', () => {
  assert.deepEqual(objectWords(null, { a: '東京都' }), ['東京都', '京都', '都'])
  assert.deepEqual(objectWords(null, { a: '𠀀𠀁 b' }), ['𠀀𠀁', '𠀁', 'b'])
})

test('a word is cut to sixty characters, and never within one', () => {
  const [word] = objectWords(null, { a: '𝔸'.repeat(10) + 'é'.repeat(70) })
  assert.equal(word, 'a'.repeat(10) + 'é'.repeat(50))
  const rare = objectWords(null, { a: '𠀀'.repeat(61) })
  assert.equal(rare[0], '𠀀'.repeat(60))
  assert.ok(rare.every((each) => each.isWellFormed()))
})

test('stored words and words of a query are folded alike', () => {
  assert.deepEqual(objectWords('Straße', { n: 17, b: ['ÉTÉ', { c: 'order-17' }] }), ['strasse', '17', 'été', 'order'])
  assert.equal(wordsQuery('STRASSE été'), "'strasse':* & 'été':*")
  assert.equal(wordsQuery('été'), "'été':*")
  assert.equal(wordsQuery('!'), null)
})

const long: Record<string, (length: number) => string> = {
  'one word without spaces': (length) => '一'.repeat(length),
  'one word that ends in such a letter': (length) => `${'a'.repeat(length)}一`,
  'letters that stand for many': (length) => '\ufdfa'.repeat(length),
}
for (const [what, textOf] of Object.entries(long)) {
  test(`the words of ${what} are found in one pass`, () => {
    const work = (length: number): number => countCharacters(() => objectWords(null, { a: textOf(length) }))
    assert.ok(work(20_000) <= 2.5 * work(10_000), `${work(10_000)} characters, then ${work(20_000)}`)
    // This is the size of the largest object.
    assert.ok(work(300_000) <= 20_000_000, `${work(300_000)} characters`)
  })
}

test('more marks on a letter than any script writes are left out before they are put in order', () => {
  // Putting half a million marks in order would take minutes.
  const marks = '\u0301\u0323'.repeat(260_000)
  const [word] = objectWords(null, { a: `e${marks}` })
  assert.equal(word?.length, 30)
  assert.equal(objectWords(null, { a: `か${'\uff9e\u0323'.repeat(170_000)}` }).length > 0, true)
})

test('the end of a long text of few different words is found too', () => {
  assert.ok(objectWords(null, { a: `${'some words of a long text '.repeat(30_000)}needle` }).includes('needle'))
})
