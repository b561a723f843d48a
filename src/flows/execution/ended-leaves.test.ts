// Migration 0060: the runs of leaves that end in one statement are counted in their flow runs at its end.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../../../test/kit/database.ts'
import { insertProject } from '../../../test/kit/runs.ts'
import { newId } from '../../kernel/id.ts'

const { pool } = await createTestDatabase()
const project = await insertProject(pool)
const agent = newId()
await pool.query(`insert into agents (id, project_id, name, capabilities) values ($1, $2, 'Leaf', '{}')`, [
  agent,
  project,
])

async function insertFlowRun(): Promise<string> {
  const id = newId()
  await pool.query(
    `insert into flow_runs (id, project_id, root, input, progress, timeout, status)
     values ($1, $2, '{"type":"task"}', 'null', '{}', 1, 'running')`,
    [id, project],
  )
  return id
}

async function insertLeaf(flowRun: string, tokens: number, cost: number | null = null): Promise<string> {
  const id = newId()
  await pool.query(
    `insert into agent_runs (id, project_id, agent_id, trigger, input, status, flow_run_id, input_tokens, output_tokens, cost_usd)
     values ($1, $2, $3, '{"type":"flow"}', '""', 'running', $4, $5, 1, $6)`,
    [id, project, agent, flowRun, tokens, cost],
  )
  return id
}

const end = `update agent_runs set status = 'completed', completed_at = muster.now() where id = any($1)`
const READ = `select id, ended_leaves, input_tokens, output_tokens, cost_usd, ready_at is not null as is_ready
  from flow_runs where id = any($1)`

interface Row {
  id: string
  ended_leaves: number
  input_tokens: number
  output_tokens: number
  cost_usd: number | null
  is_ready: boolean
}

async function read(...ids: string[]): Promise<Omit<Row, 'id'>[]> {
  const { rows } = await pool.query<Row>(READ, [ids])
  return ids.map((id) => {
    const { id: _id, ...row } = rows.find((each) => each.id === id) ?? assert.fail(id)
    return row
  })
}

test('each leaf is counted once with its usage, for the flow run that it belongs to', async () => {
  const [one, other] = [await insertFlowRun(), await insertFlowRun()]
  const leaves = [
    ...[await insertLeaf(one, 10), await insertLeaf(one, 20, 0.5), await insertLeaf(one, 30, 0.25)],
    await insertLeaf(other, 7),
  ]
  await pool.query(end, [leaves])
  const expected = [
    { ended_leaves: 3, input_tokens: 60, output_tokens: 3, cost_usd: 0.75, is_ready: true },
    { ended_leaves: 1, input_tokens: 7, output_tokens: 1, cost_usd: null, is_ready: true },
  ]
  assert.deepEqual(await read(one, other), expected)
  await pool.query(end, [leaves])
  assert.deepEqual(await read(one, other), expected, 'leaves that have ended before')
})

test('two statements of one transaction count apart, and an undone one does not count', async () => {
  const flowRun = await insertFlowRun()
  const leaves = [await insertLeaf(flowRun, 1), await insertLeaf(flowRun, 2), await insertLeaf(flowRun, 4)]
  const client = await pool.connect()
  try {
    await client.query('begin')
    await client.query(end, [[leaves[0]]])
    await client.query('savepoint s')
    await client.query(end, [[leaves[1]]])
    await client.query('rollback to s')
    await client.query(end, [[leaves[2]]])
    await client.query('commit')
  } finally {
    client.release()
  }
  const [row] = await read(flowRun)
  assert.deepEqual([row?.ended_leaves, row?.input_tokens], [2, 5])
})

test('usage after the end of a flow run counts for the run that started it', async () => {
  const flowRun = await insertFlowRun()
  const starter = newId()
  await pool.query(
    `insert into agent_runs (id, project_id, agent_id, trigger, input, status, completed_at)
     values ($1, $2, $3, '{"type":"manual"}', '""', 'completed', muster.now())`,
    [starter, project, agent],
  )
  await pool.query(`update flow_runs set parent_run_id = $2, completed_at = muster.now() where id = $1`, [
    flowRun,
    starter,
  ])
  await pool.query(end, [[await insertLeaf(flowRun, 10), await insertLeaf(flowRun, 20)]])
  const { rows } = await pool.query(`select input_tokens, output_tokens from agent_runs where id = $1`, [starter])
  assert.deepEqual(rows, [{ input_tokens: 30, output_tokens: 2 }])
})
