import assert from 'node:assert/strict'
import { test } from 'node:test'
import { agentDefaults } from './agent.ts'
import { type ExecutionMode, fitsTool, rightsWithin } from './rights.ts'

const { capabilities } = agentDefaults
const agent = (mode: ExecutionMode, approved: string[] = []) => ({
  capabilities,
  execution_mode: mode,
  require_approval: approved,
})

const modes: [ExecutionMode, ExecutionMode, ExecutionMode][] = [
  ['execute', 'execute', 'execute'],
  ['execute', 'hybrid', 'hybrid'],
  ['execute', 'suggest', 'suggest'],
  ['hybrid', 'hybrid', 'hybrid'],
  ['hybrid', 'suggest', 'suggest'],
  ['suggest', 'suggest', 'suggest'],
]
for (const [a, b, stricter] of modes) {
  test(`of ${a} and ${b} the mode is ${stricter}, whichever is the parent's`, () => {
    assert.equal(rightsWithin({ mode: a }, agent(b)).mode, stricter)
    assert.equal(rightsWithin({ mode: b }, agent(a)).mode, stricter)
  })
}

test('tools that need approval are those of the parent and of the agent', () => {
  const rights = rightsWithin({ require_approval: ['a', 'b'] }, agent('execute', ['b', 'c']))
  assert.deepEqual(rights.require_approval, ['a', 'b', 'c'])
  assert.deepEqual(rightsWithin({}, agent('execute')).require_approval, [])
})

test('capabilities of a run without bounds are those of its agent', () => {
  assert.deepEqual(rightsWithin({}, agent('execute')).capabilities, capabilities)
})

test('a pattern fits the tools of its server alone', () => {
  assert.ok(fitsTool('refund', 'refund'))
  assert.ok(fitsTool('mcp:stripe/*', 'mcp:stripe/refund'))
  for (const other of ['mcp:stripes/refund', 'mcp_stripe_refund', 'refund']) {
    assert.ok(!fitsTool('mcp:stripe/*', other), other)
  }
  assert.ok(!fitsTool('refund', 'refunds'))
})
