import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestFlows } from '../../../test/kit/flows.ts'
import { systemActor } from '../../kernel/principal.ts'
import type { BuiltInNode } from '../machine/built-in-patterns.ts'
import { cancelFlow } from './cancel.ts'
import { createLeafSlots } from './leaf-slots.ts'

test('free room goes to the waiters in turn; without waiters the callback is told', () => {
  const told: string[] = []
  const slots = createLeafSlots(1, () => told.push('nobody waits'))
  slots.take('p')
  assert.equal(slots.free(), 0)
  for (const name of ['first', 'second']) slots.wait(name, 'p', () => told.push(name))
  slots.release('p')
  assert.deepEqual(told, ['first'])
  slots.passOn()
  slots.passOn()
  assert.deepEqual(told, ['first', 'second', 'nobody waits'])
})

test('a waiter that leaves passes the room on to the next, whether or not it was called', () => {
  const told: string[] = []
  const slots = createLeafSlots(1)
  slots.take('p')
  for (const name of ['first', 'second', 'third']) slots.wait(name, 'p', () => told.push(name))
  slots.leave('first')
  assert.deepEqual(told, [], 'there is no room yet')
  slots.release('p')
  assert.deepEqual(told, ['second'])
  slots.leave('second')
  assert.deepEqual(told, ['second', 'third'])
})

test('a flow that is cancelled while it waits for room does not keep the room from the next', async () => {
  const gate = Promise.withResolvers<string>()
  const flows = await createTestFlows({ leafLimit: 1, functions: { hold: () => gate.promise, go: () => 'went' } })
  const leaf = (name: string): BuiltInNode => ({ type: 'task', function: name })
  const begun = async (root: BuiltInNode): Promise<string> => {
    const id = await flows.startFlow(root)
    while (!(await flows.flowKinds(id)).includes('flow.started')) await new Promise(setImmediate)
    return id
  }
  const holding = await begun(leaf('hold'))
  const cancelled = await begun(leaf('go'))
  const next = await begun(leaf('go'))
  await cancelFlow(flows.pool, flows.projectId, cancelled, systemActor)
  assert.equal((await flows.ended(cancelled)).status, 'cancelled')
  gate.resolve('held')
  assert.equal((await flows.ended(holding)).output, 'held')
  assert.equal((await flows.ended(next)).output, 'went')
})
