import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import { createScreens } from './screen.ts'
import { createTranscript, type FollowedEvent } from './transcript.ts'

const OWN = '01a1e73e-0c72-7d91-b94d-fd43f5b6ed80'
const SUB = '4127bf63-98c9-8132-a2a7-43becf07aa28'
const OTHER = '5127bf63-98c9-8132-a2a7-43becf07aa28'

function open({ isTTY = true, columns = 80 } = {}) {
  const parts = { out: '', notes: '' }
  let all = ''
  const stream = (name: 'out' | 'notes') => {
    const made = Object.assign(new PassThrough(), { isTTY, columns })
    made.write = (text: string | Uint8Array) => {
      const plain = stripVTControlCharacters(String(text))
      parts[name] += plain
      all += plain
      return true
    }
    return made
  }
  const { out, notes } = createScreens({ out: stream('out'), notes: stream('notes') })
  const transcript = createTranscript({ out, notes, runId: OWN, agentName: (id) => `Agent ${id}` })
  const show = (...events: FollowedEvent[]): void => events.forEach(transcript.show)
  return { transcript, show, parts, all: () => all }
}

const event = (name: string, data: Record<string, unknown>, run = OWN): FollowedEvent => ({
  event: name,
  data: { run_id: run, ...data },
})
const token = (step: number, offset: number, text: string, run = OWN) => event('token', { step, offset, text }, run)
const completed = (step: number, text: string, run = OWN) => event('step.completed', { step, text }, run)

test('a terminal shows tokens as they come', () => {
  const { show, parts } = open()
  show(token(1, 0, 'It '), token(1, 3, 'rains'))
  assert.equal(parts.out, 'It rains')
  show(completed(1, 'It rains.'))
  assert.equal(parts.out, 'It rains.\n')
})

test('a pipe gets the text of a step when the step is complete', () => {
  const { show, parts, transcript } = open({ isTTY: false })
  show(token(1, 0, 'It '))
  assert.equal(parts.out, '')
  show(completed(1, 'It rains.'), completed(2, 'And snows.\n'))
  assert.equal(parts.out, 'It rains.\nAnd snows.\n')
  assert.equal(transcript.lastText(), 'And snows.\n')
})

test('after a reconnect the text comes again from its start, and only its new part is shown', () => {
  const { show, parts } = open()
  show(
    token(1, 0, 'It '),
    token(1, 3, 'rains '),
    token(1, 0, 'It rains in '),
    token(1, 12, 'Spain'),
    token(1, 3, 'rai'),
  )
  assert.equal(parts.out, 'It rains in Spain')
})

test('a piece that leaves a gap is not shown; the whole text is, when the step is complete', () => {
  const { show, parts } = open()
  show(token(1, 0, 'It '), token(1, 9, 'Spain'))
  assert.equal(parts.out, 'It ')
  show(completed(1, 'It rains Spain'))
  assert.equal(parts.out, 'It rains Spain\n')
})

test('an old piece of a finished step is passed over', () => {
  const { show, parts } = open()
  show(completed(1, 'It rains.'), token(1, 0, 'It rains.'), token(2, 0, 'More'))
  assert.equal(parts.out, 'It rains.\nMore')
})

test('text that became void is said to be, and the new text is shown from its start', () => {
  const { show, all } = open()
  show(token(1, 0, 'It rai'), event('step.restarted', { step: 1, reason: 'crash' }), token(1, 0, 'It snows'))
  show(completed(1, 'It snows.'))
  assert.match(all(), /^It rai\nThe server stopped .* the text above is void\.\nIt snows\.\n$/)
})

test('a text that middleware changed is shown again as it counts', () => {
  const { show, all } = open()
  show(token(1, 0, 'The key is 123'), completed(1, 'The key is [hidden]'))
  assert.match(all(), /^The key is 123\nThe text was changed.*\nThe key is \[hidden\]\n$/)
})

test('tools are told on the notes, in one line that fits the window', () => {
  for (const columns of [40, 200]) {
    const { show, parts } = open({ columns })
    show(
      event('tool.started', { name: 'http_fetch', args: { url: `http://example.com/${'x'.repeat(500)}\u001b[2J` } }),
      event('tool.completed', { name: 'http_fetch', result: 'a\nb', is_error: true, duration: 1_234 }),
    )
    const [call = '', result = ''] = parts.notes.split('\n')
    assert.match(call, /^→ http_fetch \{"url":"http:.*…$/)
    assert.equal(call.length, columns)
    assert.equal(result, '← http_fetch (1.2 s) a b')
    assert.equal(parts.out, '')
  }
})

test('the text of sub-runs stands on the notes, behind the name of the agent', () => {
  const { show, parts } = open()
  show(event('run.started', { agent_id: '7' }, SUB), token(1, 0, 'one\ntw', SUB), completed(1, 'one\ntwo', SUB))
  assert.equal(parts.notes, '  Agent 7 │ starts\n  Agent 7 │ one\n  Agent 7 │ two\n')
  assert.equal(parts.out, '')
})

test('the words of two runs do not mix: the second one waits until the first one has finished its step', () => {
  const { show, all, transcript } = open()
  show(token(1, 0, 'one ', SUB), token(1, 0, 'ONE ', OTHER), token(1, 4, 'two', SUB), token(1, 4, 'TWO', OTHER))
  show(event('tool.started', { name: 'look', args: {} }, OWN))
  assert.equal(all(), '  4127bf63 │ one two')
  show(completed(1, 'one two', SUB))
  assert.equal(all(), '  4127bf63 │ one two\n  5127bf63 │ ONE TWO')
  transcript.finish()
  assert.equal(all(), '  4127bf63 │ one two\n  5127bf63 │ ONE TWO\n→ look {}\n')
})

test('no text of a model or a name reaches the terminal as an escape, even in pieces', () => {
  const { show, parts } = open()
  show(
    event('run.started', { agent_id: '\u001b]0;owned\u0007' }, SUB),
    token(1, 0, '\u001b'),
    token(1, 1, '[2J\r'),
    token(1, 5, '\n\u009b31m'),
    completed(1, '\u001b[2J\r\n\u009b31m'),
  )
  // The styles were stripped, so an escape that is left came from the text.
  assert.equal(parts.out, '␛[2J\n\uFFFD31m\n')
  assert.equal(parts.notes, '  Agent ␛]0;owned␇ │ starts\n')
})

test('unknown events and events of another shape are passed over', () => {
  const { show, all } = open()
  show(event('new.kind', {}), event('token', { step: 'x' }), event('step.completed', {}), event('tool.started', {}))
  assert.equal(all(), '')
})
