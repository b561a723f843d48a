import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pauseReasons } from '../kernel/run.ts'
import { clientCommands } from './command-table.ts'
import { explainReason, wordFor } from './explain-pause.ts'

const run = { id: '01a1e73e-0fb2-763a-80d7-f4a566137a25' }
const task = { id: '5bbad8ac-ac0d-89b7-a041-86b4ace0d2e7', title: 'Ship on Friday?' }
const agent = { id: '01a1e73c-2053-78b6-994b-ebe2ccc5d6a7', name: 'Writer' }

const known = new Set(clientCommands.map(({ usage }) => usage.split(' ')[0]))

for (const reason of [...pauseReasons, null]) {
  test(`a pause with ${reason} has a reason in words, and a command that exists`, () => {
    for (const facts of [
      { run, task, agent },
      { run, task: null, agent: null },
    ]) {
      const { why, next } = explainReason(reason, facts)
      assert.match(why, /^[A-Z].*\.$/)
      assert.ok(next.length > 0)
      for (const command of next) assert.ok(known.has(command.split(' ')[1] ?? ''), command)
    }
  })
}

test('a question is answered by its id, and an unknown outcome is decided by the run', () => {
  const asked = explainReason('human', { run, task, agent })
  assert.deepEqual(asked, {
    why: 'It waits for the answer of a person.',
    question: 'Ship on Friday?',
    next: ['muster answer 5bbad8ac "…"'],
  })
  assert.deepEqual(explainReason('outcome_unknown', { run, task, agent }).next, [
    'muster resume 01a1e73e-0fb2 --outcome done',
    'muster resume 01a1e73e-0fb2 --outcome not_done',
  ])
  assert.deepEqual(explainReason('budget', { run, task, agent }).next, [
    'muster top-up Writer 10000',
    'muster resume 01a1e73e-0fb2',
  ])
})

test('a name stands in a command only if a shell takes it as a word', () => {
  const named = (name: string): string => wordFor({ ...agent, name })
  assert.equal(named('Writer'), 'Writer')
  assert.equal(named('code-review.2'), 'code-review.2')
  for (const name of ['$(reboot)', 'a; b', "it's", '--project', 'two words', '`x`', 'a\nb', '雨'])
    assert.equal(named(name), '01a1e73c-2053')
})
