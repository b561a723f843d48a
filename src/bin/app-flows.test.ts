import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../../test/kit/database.ts'
import { insertProject } from '../../test/kit/runs.ts'
import { createAgent } from '../agents/agents.ts'
import { inTransaction } from '../db/transaction.ts'
import { type Flow, listFlows, updateFlow } from '../flows/flows.ts'
import { agentInput } from '../kernel/agent.ts'
import { type Log, silentLog } from '../kernel/log.ts'
import { systemActor } from '../kernel/principal.ts'
import { createAppFlows } from './app-flows.ts'

const { pool } = await createTestDatabase()
const functions = new Map([['double', () => 2]])
const double = { type: 'task', function: 'double' }
const monthEnd = { name: 'month_end', root: { type: 'sequential', steps: [double, double] } }

const said: string[] = []
const log: Log = { ...silentLog, warn: (_, sentence) => void said.push(sentence ?? '') }

test('without a project the flows of an app module are put off, and that is said', async () => {
  await createAppFlows(pool, [monthEnd], functions, log)
  assert.match(said.join(), /there is no project yet/)
  await createAppFlows(pool, [], functions, log)
  assert.equal(said.length, 1)
})

test('they become flows of the oldest project, once: what people change about them stays', async () => {
  const projectId = await insertProject(pool)
  await insertProject(pool)
  const stored = async (): Promise<Flow[]> => (await listFlows(pool, projectId, { limit: 200 })).items
  await Promise.all(Array.from({ length: 4 }, () => createAppFlows(pool, [monthEnd], functions, silentLog)))
  const [flow, ...others] = await stored()
  assert.deepEqual([flow?.name, flow?.root, others], [monthEnd.name, monthEnd.root, []])
  const { rows } = await pool.query(`select actor_type from audit_log where action = 'flow.create'`)
  assert.deepEqual(rows, [{ actor_type: 'system' }])

  await updateFlow(pool, projectId, flow?.id ?? '', { root: double }, { actor: systemActor, functions })
  await createAppFlows(pool, [monthEnd], functions, silentLog)
  assert.deepEqual(
    (await stored()).map(({ root }) => root),
    [double],
  )
})

test('one that cannot run is refused by its name and its nodes, and is not stored', async () => {
  const root = { type: 'parallel', branches: [double, { type: 'task', function: 'triple' }, { type: 'circle' }] }
  await assert.rejects(
    createAppFlows(pool, [{ name: 'broken', root }], functions, silentLog),
    /^Error: The flow "broken" of the app module cannot run: root\.branches\[1\]\.function: there is no function called triple; root\.branches\[2\]: has the type "circle"; types are .*\.$/,
  )
  const { rowCount } = await pool.query(`select from flows where name = 'broken'`)
  assert.equal(rowCount, 0)
})

test('their leaves may be agents of the project', async () => {
  const root = { type: 'task', agent: 'clerk' }
  const create = (): Promise<void> => createAppFlows(pool, [{ name: 'clerical', root }], functions, silentLog)
  await assert.rejects(create(), /"clerical" .* root\.agent: there is no agent called clerk\.$/)
  const { rows } = await pool.query<{ id: string }>('select id from projects order by created_at, id limit 1')
  await inTransaction(pool, (tx) =>
    createAgent(tx, rows[0]?.id ?? '', agentInput.parse({ name: 'clerk' }), {
      ...{ actor: systemActor, checkNames: async () => null, onChanged: async () => {} },
    }),
  )
  await create()
  const { rowCount } = await pool.query(`select from flows where name = 'clerical'`)
  assert.equal(rowCount, 1)
})
