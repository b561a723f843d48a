import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cutToWidth, padToWidth, textWidth } from './text-width.ts'

const widths: [text: string, width: number][] = [
  ['', 0],
  ['Writer', 6],
  ['Zoë', 3],
  ['Zoe\u0308', 3],
  ['雨が降る', 8],
  ['한국어', 6],
  ['Ｆｕｌｌ', 8],
  ['👍', 2],
  ['👩‍👩‍👧', 2],
  ['🇩🇪', 2],
  ['❤️', 2],
  ['❤', 1],
  ['…', 1],
  ['→ ←', 3],
  ['שלום', 4],
  ['مرحبا', 5],
  ['a\u200bb', 2],
  ['𠮷野家', 6],
]
for (const [text, width] of widths) {
  test(`"${text}" takes ${width} columns`, () => assert.equal(textWidth(text), width))
}

const cuts: [text: string, width: number, cut: string][] = [
  ['Writer', 6, 'Writer'],
  ['Writer', 5, 'Writ…'],
  ['Writer', 1, '…'],
  ['Writer', 0, ''],
  ['雨が降る', 8, '雨が降る'],
  ['雨が降る', 7, '雨が降…'],
  ['雨が降る', 6, '雨が…'],
  ['👩‍👩‍👧👩‍👩‍👧', 3, '👩‍👩‍👧…'],
  ['Zoe\u0308!!', 4, 'Zoe\u0308…'],
]
for (const [text, width, cut] of cuts) {
  test(`"${text}" in ${width} columns is "${cut}"`, () => {
    assert.equal(cutToWidth(text, width), cut)
    assert.ok(textWidth(cut) <= width)
  })
}

test('padding counts columns, and keeps the next column behind letters that run from right to left', () => {
  assert.equal(padToWidth('ab', 4), 'ab  ')
  assert.equal(padToWidth('ab', 4, 'left'), '  ab')
  assert.equal(padToWidth('雨', 4), '雨  ')
  assert.equal(padToWidth('שלום', 6), 'שלום\u200e  ')
  assert.equal(textWidth(padToWidth('שלום', 6)), 6)
  assert.equal(padToWidth('too long', 3), 'too long')
})
