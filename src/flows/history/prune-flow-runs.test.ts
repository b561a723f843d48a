// Retention of flow runs that resume one another: the later ones need the finished leaves of the earlier ones.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestFlows } from '../../../test/kit/flows.ts'
import { until } from '../../../test/kit/until.ts'
import { inTransaction } from '../../db/transaction.ts'
import { systemActor } from '../../kernel/principal.ts'
import { flowToResume } from '../execution/resume-flow.ts'
import { startFlow } from '../execution/start.ts'
import { type BuiltInNode, builtInPatterns } from '../machine/built-in-patterns.ts'
import { pruneFlowRuns } from './prune-flow-runs.ts'

const calls: string[] = []
let isBroken = true
const flows = await createTestFlows({
  functions: {
    one: () => void calls.push('one'),
    two: () => {
      calls.push('two')
      if (isBroken) throw new Error('two is broken')
    },
  },
})
const { pool, projectId } = flows
const root: BuiltInNode = {
  type: 'sequential',
  steps: [
    { type: 'task', function: 'one' },
    { type: 'task', function: 'two' },
  ],
}
const beginResume = async (flowRunId: string): Promise<string> => {
  const id = await inTransaction(pool, async (tx) => {
    const run = await flowToResume(tx, projectId, flowRunId)
    return startFlow(tx, run, systemActor, builtInPatterns)
  })
  flows.flowWorker.poke()
  return id
}
const resume = async (flowRunId: string) => flows.ended(await beginResume(flowRunId))
const age = (...ids: string[]) =>
  pool.query(`update flow_runs set completed_at = completed_at - interval '3 days' where id = any($1)`, [ids])
const prune = () => pruneFlowRuns(pool, { projectId, days: 1 })
const left = async (...ids: string[]): Promise<string[]> =>
  (
    await pool.query<{ id: string }>('select id from flow_runs where id = any($1) order by created_at, id', [ids])
  ).rows.map(({ id }) => id)

/** Two flow runs, of which the second resumed the first; both have failed. */
async function chain(): Promise<[first: string, second: string]> {
  isBroken = true
  const { id: first } = await flows.play(root)
  const { id: second, status } = await resume(first)
  assert.equal(status, 'failed')
  return [first, second]
}

test('a flow run stays while a later one of its chain is young, and a resume repeats no leaf', async () => {
  calls.length = 0
  const [first, second] = await chain()
  await age(first)
  assert.equal(await prune(), 0)
  isBroken = false
  const { id: third, status } = await resume(second)
  assert.equal(status, 'completed')
  assert.deepEqual(calls, ['one', 'two', 'two', 'two'])
  await age(first, second)
  assert.equal(await prune(), 0)
  await age(third)
  assert.equal(await prune(), 3)
  assert.deepEqual(await left(first, second, third), [])
})

test('a chain stays whole while a leaf of any of its flow runs is undecided, or a run above one is kept', async () => {
  const [first, second] = await chain()
  await age(first, second)
  const { id: agentId } = await flows.createAgent()
  await pool.query(
    `insert into agent_runs (id, project_id, agent_id, trigger, input, status, pause_reason, completed_at, ready_at, flow_run_id)
     values (gen_random_uuid(), $1, $2, '{"type": "flow"}', 'null', 'paused', 'outcome_unknown', now() - interval '3 days', null, $3)`,
    [projectId, agentId, first],
  )
  assert.equal(await prune(), 0)
  await pool.query(`update agent_runs set pause_reason = 'step_limit' where flow_run_id = $1`, [first])
  const above = await flows.start(await flows.createAgent())
  await pool.query('update flow_runs set parent_run_id = $2 where id = $1', [second, above.id])
  assert.equal(await prune(), 0)
  await pool.query('update flow_runs set parent_run_id = null where id = $1', [second])
  assert.equal(await prune(), 2)
})

test('a chain that is resumed while it is removed stays whole', async () => {
  const [first, second] = await chain()
  await age(first, second)
  const resuming = await pool.connect()
  await resuming.query('begin')
  const run = await flowToResume(resuming, projectId, second)
  assert.equal(await prune(), 0)
  const third = await startFlow(resuming, run, systemActor, builtInPatterns)
  await resuming.query('commit')
  resuming.release()
  assert.equal(await prune(), 0)
  assert.deepEqual(await left(first, second, third), [first, second, third])
  flows.flowWorker.poke()
  await until(async () => (await flows.read(third)).status === 'failed', 'the flow run has ended')
})
