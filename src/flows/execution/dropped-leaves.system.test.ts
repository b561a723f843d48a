// Leaves that are under way when the flow around them ends: nobody waits for their results any more.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { createTestApp } from '../../../test/kit/app.ts'
import { flowCalls } from '../../../test/kit/flow-calls.ts'
import { createScriptedModel } from '../../../test/kit/scripted-model.ts'
import type { FlowNode, PatternNode } from '../../kernel/flow.ts'
import { innerField, sharedFields } from '../../kernel/flow.ts'
import type { Run } from '../../kernel/run.ts'
import { builtInPatterns } from '../machine/built-in-patterns.ts'
import { callOf } from '../machine/move.ts'
import { createPatterns, numbered, type Pattern } from '../machine/pattern.ts'

interface First extends PatternNode {
  type: 'first'
  of: FlowNode[]
}

/** The first result of several nodes. */
const first: Pattern<First> = {
  type: 'first',
  schema: z.strictObject({ type: z.literal('first'), ...sharedFields, of: z.array(innerField).min(1) }),
  next: ({ node, children, previous }) => {
    const ended = [...children.values()].find((child) => child !== null)
    if (ended) return { end: ended }
    return { start: node.of.map((each, place) => ({ key: String(place), node: each, isOwn: true, previous })) }
  },
  parts: ({ of }) => numbered('of', of),
  expectedMs: ({ of }, times) => Math.min(...of.map(times.of)),
}

let aborted = 0
let begun = Promise.withResolvers<void>()
const kit = await createTestApp({
  patterns: createPatterns([...builtInPatterns.all, first]),
  models: new Map([
    [
      'script',
      createScriptedModel(() => {
        begun.resolve()
        return { text: 'Never.', waitFor: 'abort' }
      }),
    ],
  ]),
  functions: {
    quick: async () => {
      await begun.promise
      return 'quick'
    },
    hang: (_: unknown, { signal }) =>
      new Promise((resolve) => {
        signal.addEventListener('abort', () => {
          aborted++
          resolve('late')
        })
      }),
  },
})
const { id: projectId } = await kit.createProject()
const { play, tasksOf } = flowCalls(kit, projectId)
await kit.createAgent(projectId, { name: 'slow' })
const agent = { type: 'task', agent: 'slow', input: 'Go.', id: 'agent' }

async function runsOf(flowRunId: string): Promise<string[]> {
  for (;;) {
    const { body } = await kit.call<{ items: Run[] }>(`GET /api/projects/${projectId}/runs?flow_run_id=${flowRunId}`)
    if (body.items.every(({ completed_at }) => completed_at !== null)) return body.items.map(({ status }) => status)
    await new Promise(setImmediate)
  }
}

test('a pattern that ends stops its other leaves: agents and functions', { timeout: 30_000 }, async () => {
  begun = Promise.withResolvers()
  const root = { type: 'first', of: [callOf('quick'), agent, { ...callOf('hang'), id: 'hang' }] }
  const { id, status, output } = await play(root)
  assert.deepEqual([status, output], ['completed', 'quick'])
  assert.deepEqual(await runsOf(id), ['cancelled'])
  assert.equal(aborted, 1)
  const tasks = await tasksOf(id)
  assert.deepEqual(
    tasks.map((task) => [task.id, task.status]),
    [
      ['root/0', 'completed'],
      ['agent', 'skipped'],
      ['hang', 'skipped'],
    ],
  )
})

test('a flow whose outermost part runs out of time stops the runs of its agents', { timeout: 30_000 }, async () => {
  begun = Promise.withResolvers()
  const { id, status } = await play({ type: 'sequential', timeout: 500, steps: [agent] })
  assert.equal(status, 'failed')
  assert.deepEqual(await runsOf(id), ['cancelled'])
})
