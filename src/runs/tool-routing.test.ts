// Runs go to processes that have their tools, and wait while there is none.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestRuns, type TestRuns, testTool } from '../../test/kit/run-worker.ts'
import { createScriptedModel } from '../../test/kit/scripted-model.ts'
import { until } from '../../test/kit/until.ts'
import { updateAgent } from '../agents/agents.ts'
import { newId } from '../kernel/id.ts'
import { systemActor } from '../kernel/principal.ts'
import { createToolRegistry } from '../tools/registry.ts'
import { followAgent } from '../triggers/follow-agent.ts'
import { cancelRun } from './cancel.ts'

const madeBy: string[] = []
const tool = (name: string, process: string) =>
  testTool(name, async () => {
    madeBy.push(`${name} in ${process}`)
    return { done: true }
  })

const old = await createTestRuns({ tools: [tool('a', 'old')], isRouted: true })
const { pool, clock } = old

/** Calls the first tool that it is given, then ends. */
old.models.set(
  'script',
  createScriptedModel(({ tools, prompt }) => {
    const [first] = tools
    return first && prompt.at(-1)?.role !== 'tool' ? { calls: [{ name: first.name, args: {} }] } : { text: 'done' }
  }),
)
const startNew = (tools: readonly string[]): Promise<TestRuns> =>
  createTestRuns({ tools: tools.map((name) => tool(name, 'new')), isRouted: true, database: old })

/** Waits until the run waits for the tool. */
async function awaits(runId: string, name: string): Promise<void> {
  await until(async () => (await old.get(runId)).waiting_for === `tool ${name}`, `the run waits for ${name}`)
}

const toolTasks = async () =>
  (
    await pool.query<{ status: string; description: string; metadata: { tool: string } }>(
      `select status, description, metadata from tasks where kind = 'escalation' order by created_at`,
    )
  ).rows

test('a run waits queued while no live process has its tool, and starts when one comes', async () => {
  const agent = await old.createAgent({ tools: ['a', 'b'] })
  const { id } = await old.start(agent)
  await awaits(id, 'b')
  const run = await old.get(id)
  assert.deepEqual([run.status, run.is_wait, run.started_at, run.last_seq], ['queued', true, null, 0])
  // Runs of other agents are not kept waiting.
  assert.equal((await old.run(await old.createAgent({ tools: ['a'] }))).status, 'completed')
  const second = await startNew(['a', 'b'])
  const done = await old.finished(id)
  await second.worker.stop()
  assert.deepEqual([done.status, done.waiting_for, done.error_code], ['completed', null, null])
  const { rows } = await pool.query('select crashes, fence::int from agent_runs where id = $1', [id])
  assert.deepEqual(rows, [{ crashes: 0, fence: 1 }], 'it was claimed once, by the process that has the tool')
  assert.equal((await pool.query('select from tool_waits')).rowCount, 0)
})

test('a process leaves a run to another that has its tool, however many such runs are ahead of its own', async () => {
  madeBy.length = 0
  const second = await startNew(['b'])
  const [a, b] = [await old.createAgent({ tools: ['a'] }), await old.createAgent({ tools: ['b'] })]
  const runs = []
  for (let index = 0; index < 40; index++) runs.push(await old.start(index % 4 === 3 ? a : b))
  const ended = await Promise.all(runs.map(({ id }) => old.finished(id)))
  await second.worker.stop()
  assert.deepEqual(new Set(ended.map((run) => run.status)), new Set(['completed']))
  assert.deepEqual(madeBy.toSorted(), [...Array(10).fill('a in old'), ...Array(30).fill('b in new')])
})

test('a run that has begun waits when its tool is gone, and the wait counts for no timeout', async () => {
  const second = await startNew(['b'])
  const agent = await old.createAgent({ tools: ['b'] })
  const { id } = await old.start(agent, { timeout: 60_000 })
  await old.finished(id)
  const begun = Promise.withResolvers<void>()
  const hold = Promise.withResolvers<void>()
  old.models.set(
    'held',
    createScriptedModel(async (_request, call) => {
      if (call > 1) return { text: 'done' }
      begun.resolve()
      await hold.promise
      return { calls: [{ name: 'b', args: {} }] }
    }),
  )
  const held = await old.createAgent({ tools: ['b'], model: { provider: 'test', name: 'held' } })
  const { id: heldId } = await old.start(held, { timeout: 60_000 })
  await begun.promise
  const stopped = second.worker.stop()
  hold.resolve()
  await stopped
  await awaits(heldId, 'b')
  assert.equal((await old.get(heldId)).status, 'running')
  await clock.advance(120_000)
  const third = await startNew(['b'])
  const done = await old.finished(heldId)
  await third.worker.stop()
  assert.deepEqual([done.status, done.pause_reason], ['completed', null])
})

test('a wait ends when the agent no longer names the tool, and a cancelled one is not waited for', async () => {
  const agent = await old.createAgent({ tools: ['gone'] })
  const [one, two] = [await old.start(agent), await old.start(agent)]
  await awaits(one.id, 'gone')
  await awaits(two.id, 'gone')
  await cancelRun(old, old.projectId, two.id, async () => {})
  assert.equal((await old.get(two.id)).status, 'cancelled')
  const write = { actor: systemActor, checkNames: async () => null, onChanged: followAgent }
  await updateAgent(pool, old.projectId, agent.id, { tools: ['a'] }, write)
  assert.equal((await old.finished(one.id)).status, 'completed')
  const other = await old.start(await old.createAgent({ tools: ['gone'] }))
  await awaits(other.id, 'gone')
  await cancelRun(old, old.projectId, other.id, async () => {})
  await until(async () => (await pool.query('select from tool_waits')).rowCount === 0, 'nobody waits')
})

test('after an hour one task tells people of the tool and its agents, and it is closed when the tool is back', async () => {
  const agents = [await old.createAgent({ tools: ['c'] }), await old.createAgent({ tools: ['a', 'c'] })]
  const runs = []
  for (const agent of [...agents, ...agents]) runs.push(await old.start(agent))
  for (const { id } of runs) await awaits(id, 'c')
  assert.deepEqual(await toolTasks(), [])
  await clock.advance(3_599_000)
  await clock.advance(2_000)
  await until(async () => (await toolTasks()).length > 0, 'people are told')
  const late = await old.start(await old.createAgent({ tools: ['c'] }))
  await awaits(late.id, 'c')
  await until(
    async () => (await pool.query('select from tool_waits where task_id is null')).rowCount === 0,
    'the later agent joins the task',
  )
  const [task, ...more] = await toolTasks()
  assert.equal(more.length, 0)
  assert.deepEqual([task?.status, task?.metadata.tool], ['pending', 'c'])
  for (const { name } of agents) assert.match(task?.description ?? '', new RegExp(`\\b${name}\\b`))
  const second = await startNew(['a', 'c'])
  for (const { id } of [...runs, late]) assert.equal((await old.finished(id)).status, 'completed')
  await until(async () => (await toolTasks())[0]?.status === 'completed', 'the task is closed')
  await second.worker.stop()
})

test('a tool is known at creation if any live process has it', async () => {
  const registry = createToolRegistry({ builtIns: [], appTools: [], mcp: null })
  assert.equal(await registry.check(pool, newId(), ['a']), null)
  assert.equal(
    await registry.check(pool, newId(), ['object_gett']),
    'There is no tool called "object_gett". Did you mean "object_get"?',
  )
})
