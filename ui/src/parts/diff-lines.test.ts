import assert from 'node:assert/strict'
import { test } from 'node:test'
import { countOf, diffTexts, fold, rowsOf, wordsOf } from './diff-lines.ts'

const numbered = (from: number, to: number): string[] =>
  Array.from({ length: to - from + 1 }, (_, place) => `line ${from + place}`)

test('a changed line stands beside the line that replaced it, with the numbers of both texts', () => {
  const rows = rowsOf(diffTexts('a\nb\nc', 'a\nB\nB2\nc'))
  assert.deepEqual(
    rows.map(({ left, right, isSame }) => [left && `${left.number} ${left.text}`, right?.text ?? null, isSame]),
    [
      ['1 a', 'a', true],
      ['2 b', 'B', false],
      [null, 'B2', false],
      ['3 c', 'c', true],
    ],
  )
  assert.equal(rows.at(-1)?.right?.number, 4)
})

test('lines are counted; an empty text has none', () => {
  assert.deepEqual(countOf(diffTexts('a\nb', 'b\nc\nd')), { added: 2, removed: 1 })
  assert.deepEqual(countOf(diffTexts('', 'one')), { added: 1, removed: 0 })
  assert.deepEqual(rowsOf(diffTexts('', '')), [])
})

test('texts without anything in common are shown as replaced, within a bounded time', () => {
  const parts = diffTexts(numbered(1, 20_000).join('\n'), numbered(50_000, 70_000).join('\n'))
  assert.deepEqual(
    parts.map(({ op }) => op),
    ['removed', 'added'],
  )
})

test('equal lines far from a difference are folded; a short run of them is not', () => {
  const before = numbered(1, 40)
  const after = before.with(9, 'other').with(19, 'other')
  const stretches = fold(rowsOf(diffTexts(before.join('\n'), after.join('\n'))))
  assert.deepEqual(
    stretches.map(({ type, rows }) => [type, rows.length]),
    [
      ['fold', 6],
      ['rows', 7],
      ['rows', 3],
      ['rows', 7],
      ['fold', 17],
    ],
  )
  assert.deepEqual(
    fold(rowsOf(diffTexts('a', 'a'))).map(({ type }) => type),
    ['rows'],
  )
})

test('the words that changed are marked, unless the lines have little in common', () => {
  const { left, right } = wordsOf('Plan the work of a team.', 'Plan the work of a crew.')
  assert.deepEqual(
    [left, right].map((side) => side.filter(({ isChanged }) => isChanged).map(({ text }) => text)),
    [['team'], ['crew']],
  )
  assert.equal(left.map(({ text }) => text).join(''), 'Plan the work of a team.')
  assert.deepEqual(wordsOf('Nothing here', 'Quite another sentence').left, [{ text: 'Nothing here', isChanged: false }])
})
