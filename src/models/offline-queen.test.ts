// A flow that a queen leads, on the offline model from its plan to its report.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../test/kit/app.ts'
import { flowCalls } from '../../test/kit/flow-calls.ts'
import type { Model } from '../kernel/model-call.ts'
import { callModel } from './call-model.ts'
import { createOfflineModel } from './offline-model.ts'

const offline = createOfflineModel('offline')
const model: Model = {
  contextTokens: 128_000,
  price: null,
  call: (request, options) => callModel(offline, request, { ...options, idleTimeoutMs: 60_000 }),
}
const kit = await createTestApp({ models: new Map([['script', model]]) })
const project = await kit.createProject()
for (const name of ['queen', 'ann', 'bob']) await kit.createAgent(project.id, { name })
const { play, tasksOf } = flowCalls(kit, project.id)

const goals: [goal: string, ...words: RegExp[]][] = [
  ['First research rain, then write a poem about it', /Research rain:\n.*rain/, /Write a poem about it:\n.*poem/],
  ['Find out why sales fell', /Gather the facts: find out why sales fell:\n/, /Look for risks/],
]
for (const [goal, ...words] of goals) {
  test(`a team on the offline model reaches the goal "${goal}"`, async () => {
    const run = await play({ type: 'hierarchical', queen: 'queen', workers: ['ann', 'bob'], goal })
    assert.equal(run.status, 'completed', String(run.error))
    for (const word of words) assert.match(String(run.output), word)
    const subtasks = (await tasksOf(run.id)).filter((task) => task.id.startsWith('root/do '))
    assert.ok(subtasks.length >= 2, 'the goal was not split')
  })
}
