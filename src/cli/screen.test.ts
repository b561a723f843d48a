import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { createScreens, type ScreenStream, styled } from './screen.ts'

// It would colour pipes as well.
delete process.env.FORCE_COLOR

/** Two streams whose text is kept in the order in which it was written. */
function open({ out = false, notes = false, columns = 80 } = {}) {
  let all = ''
  const parts = { out: '', notes: '' }
  const stream = (name: 'out' | 'notes', isTTY: boolean): ScreenStream => {
    const made: ScreenStream = Object.assign(new PassThrough(), { isTTY, columns })
    made.write = (text: string | Uint8Array) => {
      parts[name] += text
      all += text
      return true
    }
    return made
  }
  const screens = createScreens({ out: stream('out', out), notes: stream('notes', notes) })
  return { ...screens, parts, all: () => all }
}

test('a pipe gets plain lines: no colour, no live line', () => {
  const { out, notes, parts } = open()
  out.print(styled('red', 'one'), ' two')
  notes.live(['50 %'])
  notes.live(null)
  out.write(styled('dim', 'three'))
  out.print('four')
  assert.equal(parts.out, 'one two\nthree\nfour\n')
  assert.equal(parts.notes, '')
  assert.equal(out.columns(), Number.POSITIVE_INFINITY)
})

test('a terminal gets colours, and no text can bring its own', () => {
  const { out, parts } = open({ out: true })
  out.print(styled('red', 'a\u001b[2Jb'), '\u001b]0;owned\u0007')
  assert.equal(parts.out, '\u001b[31ma␛[2Jb\u001b[39m␛]0;owned␇\n')
})

test('a live line is replaced by the next, and removed before text', () => {
  const { out, notes, all } = open({ out: true, notes: true })
  notes.live(['1/2'])
  notes.live(['2/2'])
  out.print('done')
  notes.live(null)
  assert.equal(all(), '1/2\r\u001b[2K2/2\r\u001b[2Kdone\n')
})

test('an open line of one stream is ended before the other stream of the same terminal writes', () => {
  const { out, notes, all } = open({ out: true, notes: true })
  out.write('It ')
  out.write('rains')
  notes.print('→ a tool')
  out.write('Again')
  out.write('.\n')
  notes.write('sub')
  out.write('own')
  notes.live(['…'])
  assert.equal(all(), 'It rains\n→ a tool\nAgain.\nsub\nown\n…')
})

test('an open line in a pipe does not touch the terminal of the notes', () => {
  const { out, notes, parts } = open({ notes: true })
  out.write('It ')
  notes.print('→ a tool')
  notes.live(['1/2'])
  out.write('rains')
  assert.equal(parts.out, 'It rains')
  assert.equal(parts.notes, '→ a tool\n1/2')
})

test('the width is that of the window, and never absurd', () => {
  assert.equal(open({ out: true, columns: 200 }).out.columns(), 200)
  assert.equal(open({ out: true, columns: 0 }).out.columns(), 20)
})
