import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { cutText } from './cut-text.ts'

const cases: [text: string, most: number, mark: string | undefined, cut: string][] = [
  ['short', 5, undefined, 'short'],
  ['longer', 5, undefined, 'longe'],
  ['longer', 5, '…', 'long…'],
  ['longer', 6, '…', 'longer'],
  ['a text', 4, ' [cut]', ' [cut]'],
  ['ab😀', 3, undefined, 'ab'],
  ['ab😀cd', 4, '…', 'ab…'],
  ['ab😀c', 5, '…', 'ab😀c'],
]
for (const [text, most, mark, cut] of cases) {
  test(`"${text}" cut to ${most}${mark === undefined ? '' : ` with "${mark}"`} is "${cut}"`, () => {
    assert.equal(cutText(text, most, mark), cut)
  })
}

test('a cut text is well-formed, fits, and begins as the whole text does', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.nat({ max: 20 }), (text, most) => {
      const cut = cutText(text, most, '…')
      assert.ok(cut.isWellFormed())
      assert.ok(cut === text || (cut.length <= Math.max(1, most) && text.startsWith(cut.slice(0, -1))))
    }),
  )
})
