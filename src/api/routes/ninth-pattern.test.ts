// A pattern that Muster does not have, in this file alone: the alternatives of a node are tried until one succeeds. The
// pattern is checked, stored, started, executed, taken over, traced and recommended like the built-in ones.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { createTestApp } from '../../../test/kit/app.ts'
import { flowCalls } from '../../../test/kit/flow-calls.ts'
import { createScriptedModel } from '../../../test/kit/scripted-model.ts'
import type { Flow } from '../../flows/definition/flows.ts'
import type { Trace } from '../../flows/history/trace.ts'
import { builtInPatterns } from '../../flows/machine/built-in-patterns.ts'
import { callOf, failed } from '../../flows/machine/move.ts'
import { createPatterns, numbered, type Pattern } from '../../flows/machine/pattern.ts'
import { type FlowNode, innerField, sharedFields } from '../../kernel/flow.ts'

const schema = z.strictObject({ type: z.literal('fallback'), ...sharedFields, tries: z.array(innerField).min(1) })
interface Fallback extends Omit<z.infer<typeof schema>, 'tries'> {
  tries: FlowNode[]
}

const fallback: Pattern<Fallback> = {
  type: 'fallback',
  schema,
  next: ({ node, previous, children, open }) => {
    if (open > 0) return 'wait'
    const last = [...children.values()].at(-1)
    if (last && last.status !== 'failed') return { end: last }
    const next = node.tries[children.size]
    if (!next) return { end: failed(`None of ${node.tries.length} succeeded.`) }
    return { start: [{ key: String(children.size), node: next, isOwn: true, previous }] }
  },
  parts: ({ tries }) => numbered('tries', tries),
  turnOf: Number,
  expectedMs: ({ tries }, times) => times.inTurn(tries.slice(0, 1).map(times.of)),
  suits: {
    summary: 'alternatives, of which the first that succeeds is taken',
    rank: 0,
    cues: [{ weight: 10, speaks: /\bplan B\b/, because: 'there is a second choice' }],
    plan: () => {
      const definition: Fallback = { type: 'fallback', tries: [callOf('muster.ask'), callOf('muster.ask')] }
      return { definition, workers: 1, calls: 2, rounds: 2 }
    },
  },
}

const called: string[] = []
let release = (): void => {}
const kit = await createTestApp({
  patterns: createPatterns([...builtInPatterns.all, fallback]),
  models: new Map([['script', createScriptedModel(() => ({ text: 'Done.' }))]]),
  functions: {
    broken: () => {
      called.push('broken')
      throw new Error('broken')
    },
    held: async (given: unknown, { signal }) => {
      called.push('held')
      await new Promise<void>((resolve) => {
        release = resolve
        signal.addEventListener('abort', () => resolve())
      })
      return given
    },
    double: (given: number) => 2 * given,
  },
})
const { id: projectId } = await kit.createProject()
const { runs, play, until, ended, tasksOf } = flowCalls(kit, projectId)
const path = `/api/projects/${projectId}/flows`

const choice = { type: 'fallback', tries: [callOf('broken'), { ...callOf('held'), id: 'second' }] }
const root = { type: 'sequential', steps: [choice, { ...callOf('double'), id: 'last' }] }

test('a ninth pattern is checked: every problem names its node, and the message lists the type', async () => {
  const validate = async (tree: object) => (await kit.call(`POST ${path}/validate`, { body: { root: tree } })).body
  assert.deepEqual(await validate(root), { valid: true, errors: [] })
  assert.match(JSON.stringify(await validate({ ...choice, extra: 1 })), /has no field \\"extra\\"/)
  const deeper = { type: 'fallback', tries: [callOf('absent'), { type: 'ninth' }] }
  assert.deepEqual(await validate(deeper), {
    valid: false,
    errors: [
      { path: 'root.tries[0].function', message: 'there is no function called absent' },
      {
        path: 'root.tries[1]',
        message:
          'has the type "ninth"; types are task, sequential, parallel, loop, map_reduce, pipeline, fork_join, hierarchical, adaptive, fallback',
      },
    ],
  })
})

test('a ninth pattern is stored, started, taken over and traced, and has an expected duration', async () => {
  const { status, body: flow } = await kit.call<Flow>(`POST ${path}`, { body: { name: 'With a fallback', root } })
  assert.equal(status, 201)
  const started = await kit.call<{ id: string; progress: { total: number } }>(`POST ${runs}`, {
    body: { flow_id: flow.id, input: 21 },
  })
  const { id, progress } = started.body
  assert.equal(progress.total, 3)
  const isAt = async (name: string, times: number): Promise<void> => {
    while (called.filter((each) => each === name).length < times) await new Promise(setImmediate)
  }
  await isAt('held', 1)
  await until(id, (run) => run.progress.failed === 1 && run.progress.running === 1)
  const { rows } = await kit.pool.query(
    'update flow_runs set fence = fence + 1, owner = null, ready_at = muster.now() where id = $1 returning expected',
    [id],
  )
  assert.deepEqual(rows, [{ expected: 2_000 }])
  kit.services.flows.onReady()
  await isAt('held', 2)
  release()
  const { status: how, output, pattern } = await ended(id)
  assert.deepEqual([how, output, pattern], ['completed', 42, 'sequential'])
  assert.deepEqual(called, ['broken', 'held', 'held'])
  assert.deepEqual(
    (await tasksOf(id)).map((task) => [task.id, task.status, task.parent_id, task.depends_on]),
    [
      ['root/0/0', 'failed', 'root/0', []],
      ['second', 'completed', 'root/0', ['root/0/0']],
      ['last', 'completed', 'root', ['second']],
    ],
  )
  const { body: trace } = await kit.call<Trace>(`GET ${runs}/${id}/trace`)
  assert.ok(trace.timeline.some(({ event, task_id }) => event === 'task.failed' && task_id === 'root/0/0'))
})

test('a ninth pattern is in the OpenAPI document, as a node of a flow with nodes within it', async () => {
  const { body } = await kit.call<{ components: { schemas: Record<string, Shown> } }>('GET /openapi.json')
  const { FlowNode, FallbackNode } = body.components.schemas
  const node = { $ref: '#/components/schemas/FlowNode' }
  assert.deepEqual(FlowNode?.anyOf?.at(-1), { $ref: '#/components/schemas/FallbackNode' })
  assert.deepEqual(FallbackNode?.properties?.tries, { type: 'array', minItems: 1, items: node })
})

interface Shown {
  anyOf?: object[]
  properties?: Record<string, object>
}

test('a ninth pattern that fails is named, and may be recommended', async () => {
  const { status, error } = await play({ ...choice, id: 'choice', tries: [callOf('broken'), callOf('broken')] })
  assert.deepEqual([status, error], ['failed', 'choice: None of 2 succeeded.'])
  const { body } = await kit.call(`POST ${path}/recommend`, { body: { workload: 'Ask, and have a plan B.' } })
  assert.equal(body.pattern, 'fallback')
})
