import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLineReader, type LongLine } from './line-reader.ts'

function read(text: string, pieceBytes: number, maxBytes: number) {
  const lines: string[] = []
  const long: LongLine[] = []
  const push = createLineReader(maxBytes, { line: (line) => lines.push(line), longLine: (line) => long.push(line) })
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += pieceBytes) push(bytes.subarray(at, at + pieceBytes))
  return { lines, long }
}

test('lines come out whole, however the bytes arrive', () => {
  for (const pieceBytes of [1, 2, 3, 7, 1_000]) {
    assert.deepEqual(read('one\n\nzwei ä€😀\nthree', pieceBytes, 100).lines, ['one', '', 'zwei ä€😀'])
  }
})

test('a line that is too long is reported by its ends and its length, and the next line is read', () => {
  const line = `HEAD${'x'.repeat(50_000)}TAIL`
  for (const pieceBytes of [1, 100, 700, 60_000]) {
    const { lines, long } = read(`before\n${line}\nafter\n`, pieceBytes, 2_000)
    assert.deepEqual(lines, ['before', 'after'])
    assert.equal(long.length, 1)
    assert.equal(long[0]?.bytes, 50_008)
    assert.ok(long[0]?.head.startsWith('HEADxxx') && long[0].tail.endsWith('xxxTAIL'))
    assert.ok(long[0].head.length <= 512 && long[0].tail.length <= 512)
  }
})

test('a line as long as the limit is kept, one byte more is not', () => {
  assert.deepEqual(read('12345\n', 2, 5).lines, ['12345'])
  assert.deepEqual(read('123456\n', 2, 5).lines, [])
})
