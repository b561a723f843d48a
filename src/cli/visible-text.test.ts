import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createPieceReader, jsonText, visibleLine, visibleText } from './visible-text.ts'

const ESC = '\u001b'

/** Texts with which a model or a name could do something to a terminal. */
const hostile: [name: string, text: string, shown: string][] = [
  ['a colour', `${ESC}[31mred`, '␛[31mred'],
  ['a title', `${ESC}]0;owned\u0007`, '␛]0;owned␇'],
  ['a clear screen', `${ESC}[2J${ESC}[H`, '␛[2J␛[H'],
  ['a link', `${ESC}]8;;http://x${ESC}\\text`, '␛]8;;http://x␛\\text'],
  ['a cursor of one byte', '\u009b2J', '\uFFFD2J'],
  ['a title of one byte', '\u009d0;owned\u009c', '\uFFFD0;owned\uFFFD'],
  ['a return to the start of the line', 'good\rbad!', 'good␍bad!'],
  ['a backspace', 'bad\b\b\bgood', 'bad␈␈␈good'],
  ['a bell, a NUL and a delete', 'a\u0007b\0c\u007f', 'a␇b␀c␡'],
  ['a vertical tab and a form feed', 'a\u000bb\u000cc', 'a␋b␌c'],
  ['an override of the direction', 'file\u202etxt.exe', 'file\uFFFDtxt.exe'],
  ['isolates of the direction', '\u2067x\u2069', '\uFFFDx\uFFFD'],
  ['half a character', 'a\ud83d', 'a\uFFFD'],
]

for (const [name, text, shown] of hostile) {
  test(`${name} is shown and does nothing`, () => {
    assert.equal(visibleText(text), shown)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the characters that must be gone
    assert.doesNotMatch(visibleText(text), /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/)
  })
}

test('letters of every script, tabs and line ends stay', () => {
  const text = 'Zoë 雨が降る 👩‍👩‍👧 שלום مرحبا e\u0301\tone\ntwo'
  assert.equal(visibleText(text), text)
  assert.equal(visibleText('one\r\ntwo\u2028three'), 'one\ntwo\nthree')
})

test('a line has no line ends, no tabs and no double spaces', () => {
  assert.equal(visibleLine(' one\n\n  two\tthree '), 'one two three')
})

test('line ends and characters that are cut in two by the pieces are put together', () => {
  const reader = createPieceReader()
  const shown = ['one\r', '\ntwo \ud83d', '\ude00', '\r', 'three', '\ud83d'].map((piece) => reader.read(piece)).join('')
  assert.equal(shown + reader.rest(), 'one\ntwo 😀␍three\uFFFD')
  assert.equal(reader.rest(), '')
})

test('JSON has the same value and no character that a terminal obeys', () => {
  const value = {
    name: hostile
      .map(([, text]) => text)
      .join(' ')
      .toWellFormed(),
    line: 'a\u2028b',
  }
  const text = jsonText(value)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the characters that must be gone
  assert.doesNotMatch(text, /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/)
  assert.deepEqual(JSON.parse(text), value)
  assert.equal(jsonText(undefined), 'null')
})
