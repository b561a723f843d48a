// The runs of agent leaves: a run under way stays the leaf's run, and every run is counted once.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestFlows } from '../../../test/kit/flows.ts'
import { createScriptedModel } from '../../../test/kit/scripted-model.ts'
import { until } from '../../../test/kit/until.ts'
import { inTransaction } from '../../db/transaction.ts'
import type { BuiltInNode } from '../machine/built-in-patterns.ts'

const gates = new Map<string, PromiseWithResolvers<void>>()
const gate = (name: string): PromiseWithResolvers<void> => {
  const known = gates.get(name) ?? Promise.withResolvers<void>()
  gates.set(name, known)
  return known
}
const flows = await createTestFlows()
flows.models.set(
  'script',
  createScriptedModel(async ({ prompt }) => {
    const [, name] = /wait for (\w+)/.exec(JSON.stringify(prompt)) ?? []
    if (name) await gate(name).promise
    return { text: `said ${name ?? ''}`.trim() }
  }),
)
const agent = await flows.createAgent({ name: 'ann' })
const ask = (name: string, input: string, more: object = {}): BuiltInNode => ({
  type: 'task',
  agent: name,
  input,
  ...more,
})
const parallel = (...branches: BuiltInNode[]): BuiltInNode => ({ type: 'parallel', branches })
const isParked = (id: string) => async (): Promise<boolean> => {
  const { rows } = await flows.pool.query(
    `select from flow_runs where id = $1 and owner is null and (progress->>'running')::int > 0`,
    [id],
  )
  return rows.length === 1
}

for (const [how, change] of [
  ['disabled', 'enabled = false'],
  ['renamed', `name = name || ' of old'`],
] as const) {
  test(`a leaf at work completes although its agent was ${how}`, async () => {
    const { id: agentId } = await flows.createAgent({ name: `ben ${how}` })
    const id = await flows.startFlow(
      parallel(ask('ann', `wait for first${how}`), ask(`ben ${how}`, `wait for second${how}`)),
    )
    await until(isParked(id), 'the flow run is parked')
    await until(() => gates.has(`second${how}`), 'the second leaf is at work')
    await flows.pool.query(`update agents set ${change} where id = $1`, [agentId])
    gate(`first${how}`).resolve()
    await until(async () => (await flows.flowKinds(id)).includes('task.completed'), 'the first leaf ends')
    gate(`second${how}`).resolve()
    const { status, output, error } = await flows.ended(id)
    assert.deepEqual([status, output, error], ['completed', [`said first${how}`, `said second${how}`], null])
  })
}

test('a claim writes no run of a leaf that is under way', async () => {
  const id = await flows.startFlow(parallel(ask('ann', 'wait for one'), ask('ann', 'wait for two')))
  await until(isParked(id), 'the flow run is parked')
  await flows.pool.query(
    `create function refuse() returns trigger language plpgsql as $$ begin raise exception 'No run.'; end $$;
     create trigger refuse before insert on agent_runs for each row execute function refuse()`,
  )
  gate('one').resolve()
  await until(async () => (await flows.flowKinds(id)).includes('task.completed'), 'the first leaf ends')
  gate('two').resolve()
  const { status, error } = await flows.ended(id)
  await flows.pool.query('drop trigger refuse on agent_runs')
  await flows.pool.query('drop function refuse')
  assert.deepEqual([status, error], ['completed', null])
})

test('a leaf whose run was never queued fails if its agent is disabled', async () => {
  const { id: agentId } = await flows.createAgent({ name: 'cid' })
  const root = parallel(ask('ann', 'wait for third'), ask('cid', 'wait for never'))
  const id = await flows.startFlow(root)
  await until(isParked(id), 'the flow run is parked')
  await flows.pool.query('update agents set enabled = false where id = $1', [agentId])
  // As if the owner had died after it announced the leaf and before it queued the run.
  await flows.pool.query('update agent_runs set id = gen_random_uuid(), flow_run_id = null where agent_id = $1', [
    agentId,
  ])
  gate('third').resolve()
  const { status, error } = await flows.ended(id)
  assert.deepEqual([status, error], ['partial', '1 failed. root/1: The agent cid is disabled.'])
  gate('never').resolve()
})

/** A flow run, and the parent of a flow run below it. */
async function createTree() {
  const { id: tree } = await flows.play(ask('ann', 'Go.'))
  const { id: runId } = await flows.run(agent)
  return { tree, parent: { runId, within: { depth: 1, chain_depth: 0, rights: {}, payers: [], tree } } }
}

async function runsBelow(flowRunId: string): Promise<number | undefined> {
  const { rows } = await flows.pool.query<{ runs_below: number }>('select runs_below from flow_runs where id = $1', [
    flowRunId,
  ])
  return rows[0]?.runs_below
}

test('the runs below a flow run are counted once, if one of them cannot be stored', async () => {
  const { tree, parent } = await createTree()
  await flows.pool.query(
    `create function refuse() returns trigger language plpgsql as $$ begin
       if new.input = '"poison"' then raise exception 'This cannot be stored.'; end if; return new; end $$;
     create trigger refuse before insert on agent_runs for each row execute function refuse()`,
  )
  const pipeline: BuiltInNode = {
    type: 'pipeline',
    source: ['a', 'b'],
    stages: [{ type: 'task', agent: 'ann', input: '{{item}}' }],
    on_error: 'stop',
  }
  const root = parallel(ask('ann', 'one'), ask('ann', 'poison'), ask('ann', 'two'), pipeline)
  const { status, error } = await flows.play(root, { parent })
  await flows.pool.query('drop trigger refuse on agent_runs')
  await flows.pool.query('drop function refuse')
  assert.equal(status, 'partial')
  assert.match(error ?? '', /^1 failed\. .*This cannot be stored\.$/)
  assert.equal(await runsBelow(tree), 4)
})

test('runs that are queued at the same moment are counted, and do not exceed the limit', async () => {
  const { tree, parent } = await createTree()
  const root = parallel(ask('ann', 'one'), ask('ann', 'two'), ask('ann', 'three'))
  const id = await inTransaction(flows.pool, async (tx) => {
    await tx.query('update flow_runs set runs_below = 9998 where id = $1', [tree])
    const flowRunId = await flows.startFlow(root, { parent })
    await until(async () => {
      const { rows } = await flows.pool.query(
        `select from pg_stat_activity where wait_event_type = 'Lock' and query like '%runs_below%'
           and datname = current_database()`,
      )
      return rows.length > 0
    }, 'the runs wait for the row of the uppermost flow run')
    return flowRunId
  })
  const { status, error } = await flows.ended(id)
  assert.equal(status, 'partial')
  assert.match(error ?? '', /^1 failed\. .*has reached its limit of 10000 runs of agents in all flow runs below it\.$/)
  assert.equal(await runsBelow(tree), 10_000)
})
