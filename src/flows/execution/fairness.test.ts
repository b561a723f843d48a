// One project has more hanging work than a process has slots. The work of another project is done all the same. The
// tests cover runs, flow runs and leaves.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestFlows } from '../../../test/kit/flows.ts'
import { insertProject } from '../../../test/kit/runs.ts'
import { createScriptedModel } from '../../../test/kit/scripted-model.ts'
import { createAgent } from '../../agents/agents.ts'
import { inTransaction } from '../../db/transaction.ts'
import { agentInput } from '../../kernel/agent.ts'
import { systemActor } from '../../kernel/principal.ts'
import { startRun } from '../../runs/start.ts'
import { followAgent } from '../../triggers/follow-agent.ts'
import { type BuiltInNode, builtInPatterns } from '../machine/built-in-patterns.ts'
import { startFlow } from './start.ts'

const hang = Promise.withResolvers<void>()
const flows = await createTestFlows({
  slots: 10,
  leafLimit: 10,
  functions: { hang: () => hang.promise.then(() => 'hung'), go: () => 'went' },
})
const { pool } = flows
flows.models.set(
  'hang',
  createScriptedModel(() => ({ text: 'Hung.', waitFor: hang.promise })),
)
flows.models.set(
  'go',
  createScriptedModel(() => ({ text: 'Went.' })),
)
const hog = flows.projectId
const hanging = await flows.createAgent({ model: { provider: 'test', name: 'hang' } })

async function newcomer(): Promise<{ projectId: string; agentId: string }> {
  const projectId = await insertProject(pool, `newcomer ${crypto.randomUUID()}`)
  const input = agentInput.parse({ name: 'quick', model: { provider: 'test', name: 'go' } })
  const rules = { actor: systemActor, checkNames: async () => null, onChanged: followAgent }
  const agent = await inTransaction(pool, (tx) => createAgent(tx, projectId, input, rules))
  return { projectId, agentId: agent.id }
}

const underWay = async (projectId: string): Promise<number> =>
  (await pool.query('select from agent_runs where owner is not null and project_id = $1', [projectId])).rowCount ?? 0

async function until(isTrue: () => Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await new Promise((resolve) => setTimeout(resolve, 5))
}

const play = async (projectId: string, root: BuiltInNode): Promise<string> => {
  const run = { projectId, flowId: null, root, input: null, timeoutMs: 60_000, workers: null }
  const id = await startFlow(pool, run, systemActor, builtInPatterns)
  flows.flowWorker.poke()
  return id
}

test('a run of another project finds a slot beside a project whose runs hang', async () => {
  for (let index = 0; index < 30; index++) {
    await startRun(pool, hog, hanging.id, { input: 'x', trigger: { type: 'manual' } })
  }
  flows.worker.onReady()
  await until(async () => (await underWay(hog)) === 8)
  for (let index = 0; index < 3; index++) {
    const { projectId, agentId } = await newcomer()
    const { id } = await startRun(pool, projectId, agentId, { input: 'x', trigger: { type: 'manual' } })
    flows.worker.onReady()
    await until(
      async () =>
        (await pool.query('select from agent_runs where id = $1 and completed_at is not null', [id])).rowCount === 1,
    )
  }
  assert.equal(await underWay(hog), 8, 'two of ten slots are kept')
})

test('a function of another project is called beside a project whose functions hang', async () => {
  const many: BuiltInNode = {
    type: 'parallel',
    branches: Array.from({ length: 30 }, (): BuiltInNode => ({ type: 'task', function: 'hang' })),
  }
  const [one, two] = [await play(hog, many), await play(hog, many)]
  const begun = `select from flow_events where run_id = any($1) and kind = 'task.started'`
  await until(async () => ((await pool.query(begun, [[one, two]])).rowCount ?? 0) >= 8)
  const { projectId } = await newcomer()
  const quick = await flows.ended(await play(projectId, { type: 'task', function: 'go' }))
  assert.deepEqual([quick.status, quick.output], ['completed', 'went'])
})

test('hanging runs and leaves all end once they may go on', async () => {
  hang.resolve()
  await until(async () => {
    const { rowCount } = await pool.query(
      'select from agent_runs where completed_at is null union all select from flow_runs where completed_at is null',
    )
    return rowCount === 0
  })
})

test('max_concurrent_runs caps a project, and every run has its turn', async () => {
  const gate = Promise.withResolvers<void>()
  let most = 0
  flows.models.set(
    'counted',
    createScriptedModel(async () => {
      most = Math.max(most, await underWay(hog))
      await gate.promise
      return { text: 'Done.' }
    }),
  )
  await flows.set({ max_concurrent_runs: 2 })
  await pool.query(`select pg_notify('muster_halt', '')`)
  const capped = await flows.createAgent({ model: { provider: 'test', name: 'counted' } })
  // A process knows the cap within a second.
  await new Promise((resolve) => setTimeout(resolve, 1_500))
  const started = []
  for (let index = 0; index < 6; index++) started.push(await flows.start(capped))
  await until(async () => (await underWay(hog)) === 2)
  gate.resolve()
  for (const { id } of started) assert.equal((await flows.finished(id)).status, 'completed')
  assert.equal(most, 2)
})
