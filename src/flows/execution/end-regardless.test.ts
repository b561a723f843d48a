import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MOST_CRASHES } from '../../queue/queue-table.ts'
import { endAsked } from './end-regardless.ts'

const flow = {
  project_id: 'p',
  age: 100,
  still: 0,
  timeout: 60,
  crashes: 0,
  cancel_requested_at: null,
  within: null,
}
const awake = { isHalted: () => false }

test('a flow run that failed in our own code ends if its time is up, if it was cancelled, or after many failures', () => {
  assert.equal(endAsked(awake, flow)?.status, 'timed_out')
  assert.equal(endAsked(awake, { ...flow, cancel_requested_at: new Date() })?.status, 'cancelled')
  assert.equal(endAsked(awake, { ...flow, timeout: 200, crashes: MOST_CRASHES - 1 })?.status, 'failed')
  assert.equal(endAsked(awake, { ...flow, timeout: 200 }), null)
})

test('time in which it waited for people, and the off switch, do not end it', () => {
  assert.equal(endAsked(awake, { ...flow, still: 50 }), null)
  assert.equal(endAsked({ isHalted: () => true }, flow), null)
})
