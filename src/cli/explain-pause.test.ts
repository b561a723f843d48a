import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aRun } from '../../test/kit/genui-facts.ts'
import { pauseReasons, type Run } from '../kernel/run.ts'
import { clientCommands } from './command-table.ts'
import { clockTime } from './durations.ts'
import { explainStopped, waitText } from './explain-pause.ts'
import { wordFor } from './word-for.ts'
import { withProject } from './workplace.ts'

const run = aRun({ id: '01a1e73e-0fb2-763a-80d7-f4a566137a25', status: 'paused', completed_at: null })
const task = { id: '5bbad8ac-ac0d-89b7-a041-86b4ace0d2e7', title: 'Ship on Friday?', metadata: {} }
const agent = { id: '01a1e73c-2053-78b6-994b-ebe2ccc5d6a7', name: 'Writer' }

const known = new Set(clientCommands.map(({ usage }) => usage.split(' ')[0]))

for (const pause_reason of [...pauseReasons, null]) {
  test(`a pause with ${pause_reason} has a reason in words, and a command that exists`, () => {
    for (const facts of [
      { task, agent },
      { task: null, agent: null },
    ]) {
      const { why, next } = explainStopped({ run: { ...run, pause_reason }, ...facts })
      assert.match(why, /^[A-Z].*\.$/)
      assert.ok(next.length > 0)
      for (const command of next) assert.ok(known.has(command.split(' ')[1] ?? ''), command)
    }
  })
}

test('a command that is printed names the project that was named', () => {
  const project = { id: '01a1e73e-2222-763a-80d7-f4a566137a25', name: 'Support desk' }
  const shown = (name: string) => withProject('muster resume 01a1e73e', { ...project, name })
  assert.equal(shown('desk'), 'muster resume 01a1e73e --project desk')
  assert.equal(shown('Support desk'), 'muster resume 01a1e73e --project "Support desk"')
  assert.equal(shown('$(desk)'), 'muster resume 01a1e73e --project 01a1e73e-2222')
})

test('a question is answered by its id, and an unknown outcome is decided by the run', () => {
  const asked = explainStopped({ run: { ...run, pause_reason: 'human' }, task, agent })
  assert.deepEqual(asked, {
    why: 'It waits for the answer of a person.',
    question: 'Ship on Friday?',
    next: ['muster answer 5bbad8ac "…"'],
  })
  const anew = { ...task, metadata: { kind: 'begin_anew' } }
  assert.deepEqual(explainStopped({ run: { ...run, pause_reason: 'human' }, task: anew, agent }).next, [
    'muster answer 5bbad8ac again',
    'muster answer 5bbad8ac stop',
  ])
  const next = (change: Partial<Run>) => explainStopped({ run: { ...run, ...change }, task, agent }).next
  assert.deepEqual(next({ pause_reason: 'outcome_unknown' }), [
    'muster resume 01a1e73e-0fb2 --outcome done',
    'muster resume 01a1e73e-0fb2 --outcome not_done',
  ])
  assert.deepEqual(next({ pause_reason: 'budget' }), ['muster top-up Writer 10000', 'muster resume 01a1e73e-0fb2'])
  const flow = '01a1e73e-1111-763a-80d7-f4a566137a25'
  const ended = { status: 'failed', completed_at: run.created_at } as const
  assert.deepEqual(next(ended), ['muster resume 01a1e73e-0fb2'])
  assert.deepEqual(next({ ...ended, trigger: { type: 'flow', flow_run_id: flow } }), ['muster resume 01a1e73e-1111'])
  assert.deepEqual(next({ ...ended, resumed_as: flow }), ['muster follow 01a1e73e-1111'])
})

test('a run that waits for its provider gives the words of the provider and the time of the next try', () => {
  const at = '2026-01-02T03:04:05.000Z'
  const wait = { pause_reason: 'unavailable', waiting_for: 'provider openai', wait_message: 'Slow down.' } as const
  const { why, next } = explainStopped({ run: { ...run, ...wait, next_try_at: at }, task: null, agent })
  assert.equal(why, `It waits for the provider openai: Slow down. Next try: ${clockTime(at)}.`)
  assert.deepEqual(next, ['muster try-now 01a1e73e-0fb2'])
  assert.equal(
    waitText({ ...run, ...wait, next_try_at: at }),
    `waits for provider openai, next try ${clockTime(at)}: Slow down.`,
  )
  assert.equal(
    waitText({ ...run, ...wait, wait_message: 'openai answered 429: Slow down.' }),
    'waits for provider openai: it answered 429: Slow down.',
  )
  assert.equal(waitText({ ...run, waiting_for: 'tool refund' }), 'waits for tool refund')
  assert.equal(waitText({ ...run, waiting_for: null }), null)
})

test('a name stands in a command only if a shell takes it as a word', () => {
  const named = (name: string): string => wordFor({ ...agent, name })
  assert.equal(named('Writer'), 'Writer')
  assert.equal(named('code-review.2'), 'code-review.2')
  assert.equal(named('Careful desk'), '"Careful desk"')
  for (const name of ['$(reboot)', 'a; b', "it's", '--project', ' two', '`x`', 'a\nb', '雨'])
    assert.equal(named(name), '01a1e73c-2053')
})
