import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestFlows } from '../../../test/kit/flows.ts'
import type { BuiltInNode } from '../machine/built-in-patterns.ts'

const f = (name: string): BuiltInNode => ({ type: 'task', function: name })

for (const { what, fn, patienceMs, isDone } of [
  { what: 'ends in time is done once', fn: 'short', patienceMs: 10_000, isDone: true },
  { what: 'takes too long is cut off, and left to the next process', fn: 'long', patienceMs: 50, isDone: false },
]) {
  test(`at the stop of a process a function that ${what}`, async () => {
    let calls = 0
    let wasCutOff = false
    const begun = Promise.withResolvers<void>()
    const flows = await createTestFlows({
      functions: {
        short: async () => {
          calls++
          begun.resolve()
          await new Promise((resolve) => setTimeout(resolve, 150))
          return 'done'
        },
        long: (_: unknown, { signal }) => {
          begun.resolve()
          return new Promise((_, reject) => {
            signal.addEventListener('abort', () => {
              wasCutOff = true
              reject(new Error('cut off'))
            })
          })
        },
        next: () => assert.fail('nothing new is begun'),
      },
      patienceMs,
    })
    const id = await flows.startFlow({ type: 'sequential', steps: [f(fn), f('next')] })
    await begun.promise
    await flows.flowWorker.stop()
    const { status, owner, progress } = await flows.read(id)
    assert.deepEqual([status, owner], ['running', null])
    assert.equal(progress.completed, isDone ? 1 : 0)
    assert.deepEqual(
      (await flows.flowKinds(id)).filter((kind) => kind.startsWith('task.')),
      isDone ? ['task.started', 'task.completed'] : ['task.started'],
    )
    assert.equal(calls, isDone ? 1 : 0)
    assert.equal(wasCutOff, !isDone)
    const { rows } = await flows.pool.query(
      'select ready_at <= muster.now() as is_ready from flow_runs where id = $1',
      [id],
    )
    assert.deepEqual(rows, [{ is_ready: true }])
  })
}
