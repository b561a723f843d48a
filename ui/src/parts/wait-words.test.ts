import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aRun } from '../../../test/kit/genui-facts.ts'
import { statusOfRun, waitWords } from './wait-words.ts'

const wait = { status: 'paused', pause_reason: 'unavailable', is_wait: true, completed_at: null } as const

test('a run that waits for a provider is shown as waiting, with the words of the provider', () => {
  const run = aRun({ ...wait, waiting_for: 'provider openai', wait_message: 'Slow down.' })
  assert.deepEqual([statusOfRun(run), waitWords(run)], ['waiting', 'waits for provider openai: Slow down.'])
})

test('a pause that is an end keeps its status, and its reason in plain words', () => {
  const run = aRun({ status: 'paused', pause_reason: 'step_limit' })
  assert.deepEqual([statusOfRun(run), waitWords(run)], ['paused', 'step limit'])
  assert.deepEqual([statusOfRun(aRun()), waitWords(aRun())], ['completed', null])
})
