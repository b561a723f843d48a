// The time of a run above an agent that is a flow, while the leaves of the flow wait.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestFlows } from '../../../test/kit/flows.ts'
import { createScriptedModel } from '../../../test/kit/scripted-model.ts'
import { until } from '../../../test/kit/until.ts'
import { wakeWaiting } from '../../journal/wake.ts'
import { systemActor } from '../../kernel/principal.ts'
import type { AskHuman } from '../../runs/owned-run.ts'
import { createFlow } from '../definition/flows.ts'
import { builtInPatterns } from '../machine/built-in-patterns.ts'
import { createRunFlow } from './run-flow.ts'

const answers = new Map<string, { answer: unknown; isRefused: boolean }>()
const asked: string[] = []
const askHuman: AskHuman = {
  ask: async ({ taskId }) => void asked.push(taskId),
  answers: async (ids) => new Map(ids.flatMap((id) => (answers.has(id) ? [[id, answers.get(id) as never]] : []))),
}
const flows = await createTestFlows({ askHuman })
const { pool, clock, projectId, functions } = flows
const checking = { patterns: builtInPatterns, functions }
flows.worker.serveFlows(createRunFlow({ ...checking, pool, onFlowReady: () => flows.flowWorker.poke() }))

test('a run stands still while the leaf of a flow below it waits, and is woken when the leaf continues', async () => {
  const gate = Promise.withResolvers<void>()
  flows.models.set(
    'script',
    createScriptedModel(async (_request, call) => {
      if (call === 1) return { calls: [{ name: 'ask_human', args: { question: 'May I?' } }] }
      await gate.promise
      return { text: 'leaf done' }
    }),
  )
  flows.models.set(
    'parent',
    createScriptedModel((_request, call) =>
      call === 1 ? { calls: [{ name: 'spawn_agent', args: { agent: 'flow', input: 'Go.' } }] } : { text: 'done' },
    ),
  )
  await flows.createAgent({ name: 'leaf', tools: ['ask_human'] })
  const root = { type: 'task', id: 'leaf', agent: 'leaf', input: 'x' }
  await createFlow(pool, projectId, { name: 'one leaf', root }, { ...checking, actor: systemActor })
  await flows.createAgent({ name: 'flow', flow_type: 'flow', flow: 'one leaf' })
  const parent = await flows.createAgent({
    model: { provider: 'test', name: 'parent' },
    tools: ['spawn_agent'],
    default_timeout: 30_000,
  })
  const { id } = await flows.start(parent)
  const isWaiting = async () =>
    (await pool.query('select from flow_runs where all_wait_since is not null')).rowCount === 1
  await until(isWaiting, 'the flow stands still')
  await clock.advance(40_000)
  const row = async () =>
    (await pool.query<{ stands_still: boolean; status: string }>('select * from agent_runs where id = $1', [id]))
      .rows[0]
  await until(async () => (await row())?.stands_still === true || (await row())?.status !== 'running', 'it looks')
  assert.deepEqual([(await row())?.status, (await row())?.stands_still], ['running', true])
  answers.set(asked[0] ?? assert.fail(), { answer: 'Yes.', isRefused: false })
  const { rows: leaves } = await pool.query<{ id: string }>('select id from agent_runs where flow_run_id is not null')
  await wakeWaiting(pool, leaves[0]?.id ?? assert.fail(), 'human')
  flows.worker.onReady()
  await until(async () => (await row())?.stands_still === false, 'the run above is woken')
  gate.resolve()
  assert.equal((await flows.finished(id)).status, 'completed')
})
