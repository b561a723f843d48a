// Deliveries against the database: two processes, and rolled-back transactions.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../test/kit/app.ts'
import { atEnd } from '../../test/kit/at-end.ts'
import { createTestPool } from '../../test/kit/database.ts'
import { createHook, type MadeHook } from '../../test/kit/hooks.ts'
import { until } from '../../test/kit/until.ts'
import { createDeliver, type Delivery } from './deliver.ts'
import { type FoundHook, findHook } from './find-hook.ts'

const kit = await createTestApp()
const project = await kit.createProject()
const other = createTestPool(kit.url, 20)
atEnd(() => other.end())
const [here, there] = [createDeliver(kit.pool), createDeliver(other)]

const delivery = (webhookId: string | null, input: unknown = {}): Delivery => ({
  webhookId,
  input,
  requestId: 'r',
  address: '127.0.0.1',
})

const find = async (hook: MadeHook, webhookId: string | null = null): Promise<FoundHook> =>
  (await findHook(kit.pool, kit.cipher, hook.id, webhookId)) ?? assert.fail('there is no such hook')

async function rowsOf(hook: MadeHook): Promise<{ runs: number; deliveries: number; notes: number }> {
  const { rows } = await kit.pool.query<{ runs: number; deliveries: number; notes: number }>(
    `select (select count(*) from agent_runs where agent_id = $1) as runs,
       (select count(*) from hook_deliveries where hook_id = $2) as deliveries,
       (select count(*) from audit_log where actor_id = $2::text and action = 'hook.deliver') as notes`,
    [hook.agentId, hook.id],
  )
  return rows[0] ?? assert.fail()
}

test('the same webhook-id 20 times at once in two processes: one run, one entry', async () => {
  for (let round = 0; round < 5; round++) {
    const hook = await createHook(kit, project.id)
    // All hooks are found before the first delivery, so that only the unique row decides.
    const found = await find(hook, 'same')
    const ids = await Promise.all(
      Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? here : there)(found, delivery('same', { n }))),
    )
    assert.equal(new Set(ids).size, 1)
    assert.deepEqual(await rowsOf(hook), { runs: 1, deliveries: 1, notes: 1 })
  }
})

test('a delivery that waits for another whose transaction fails starts the run itself', async () => {
  const hook = await createHook(kit, project.id)
  const found = await find(hook)
  const waiting = await whileHeld(
    ['insert into hook_deliveries (hook_id, webhook_id, run_id) values ($1, $2, $1)', [hook.id, 'cut']],
    async () => {
      const delivered = here(found, delivery('cut'))
      await until(async () => (await other.query(WAITING)).rowCount === 1, 'it waits for the row', HELD_MS)
      return { delivered }
    },
  )
  assert.notEqual(await waiting.delivered, hook.id)
  assert.deepEqual(await rowsOf(hook), { runs: 1, deliveries: 1, notes: 1 })
})

/** A wait shorter than the database's limit for idle transactions. */
const HELD_MS = 10_000
const WAITING = `select from pg_stat_activity where wait_event_type = 'Lock' and query like '%hook_deliveries%'`

/**
 * Runs `during` while another transaction has executed this statement without a commit; then rolls the statement back.
 */
async function whileHeld<Result>([sql, values]: [string, unknown[]], work: () => Promise<Result>): Promise<Result> {
  const client = await other.connect()
  try {
    await client.query('begin')
    await client.query(sql, values)
    return await work()
  } finally {
    await client.query('rollback').finally(() => client.release())
  }
}

test('a delivery whose first attempt failed in this process succeeds at the next attempt', async () => {
  const hook = await createHook(kit, project.id)
  const found = await find(hook)
  const unstorable = here(found, delivery('twice', { text: '\u0000' }))
  const right = here(found, delivery('twice', { text: 'x' }))
  await assert.rejects(unstorable)
  assert.ok(await right)
  assert.deepEqual(await rowsOf(hook), { runs: 1, deliveries: 1, notes: 1 })
})

test('a delivery to an agent that is disabled between the lookup and the start leaves no trace', async () => {
  const hook = await createHook(kit, project.id)
  const found = await find(hook)
  await kit.call(`PATCH /api/projects/${project.id}/agents/${hook.agentId}`, { body: { enabled: false } })
  for (const webhookId of ['id', null]) {
    await assert.rejects(here(found, delivery(webhookId)), { code: 'CONFLICT' })
  }
  assert.deepEqual(await rowsOf(hook), { runs: 0, deliveries: 0, notes: 0 })
})

test('a hook that is deleted between the lookup and the start is not found', async () => {
  const hook = await createHook(kit, project.id)
  const found = await find(hook)
  await kit.call(`DELETE ${hook.path}`)
  await assert.rejects(here(found, delivery('id')), { code: 'NOT_FOUND' })
  assert.deepEqual(await rowsOf(hook), { runs: 0, deliveries: 0, notes: 0 })
})

test('the use of a hook is noted without waiting for a locked row', async () => {
  const hook = await createHook(kit, project.id)
  const found = await find(hook)
  await whileHeld(['select from hooks where id = $1 for no key update', [hook.id]], () => here(found, delivery('held')))
  assert.ok((await find(hook)).isUseDue)
  await here(await find(hook), delivery('free'))
  assert.ok(!(await find(hook)).isUseDue)
})

test('a hook is found by primary keys among many hooks, agents and deliveries', async () => {
  const hook = await createHook(kit, project.id)
  const copies = (table: string, changes: string): string =>
    `insert into ${table} select (jsonb_populate_record(t, ${changes})).* from ${table} t, generate_series(1, 2000) n`
  // A generated column takes no value.
  await kit.pool.query(
    `insert into agents (id, project_id, name) select gen_random_uuid(), project_id, 'copy ' || n
     from agents t, generate_series(1, 2000) n where t.id = $1`,
    [hook.agentId],
  )
  await kit.pool.query(`${copies('hooks', `jsonb_build_object('id', gen_random_uuid())`)} where t.id = $1`, [hook.id])
  await here(await find(hook), delivery('first'))
  await kit.pool.query(
    `${copies('hook_deliveries', `jsonb_build_object('webhook_id', 'copy ' || n)`)} where t.hook_id = $1`,
    [hook.id],
  )
  const client = await kit.pool.connect()
  try {
    for (const table of ['agents', 'hooks', 'hook_deliveries']) await client.query(`analyze ${table}`)
    await findHook(client, kit.cipher, hook.id, 'x')
    const { rows } = await client.query<{ 'QUERY PLAN': string }>(`explain execute hook_find('${hook.id}', 'x')`)
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
    for (const index of ['hooks_pkey', 'agents_pkey', 'hook_deliveries_pkey']) assert.ok(plan.includes(index), plan)
    assert.doesNotMatch(plan, /Seq Scan/)
  } finally {
    client.release()
  }
})
