import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestApp } from '../../test/kit/app.ts'
import { createHook } from '../../test/kit/hooks.ts'
import { newId } from '../kernel/id.ts'
import { pruneDeliveries } from './prune-deliveries.ts'

const kit = await createTestApp()
const hook = await createHook(kit, (await kit.createProject()).id)

test('a webhook-id is remembered for 30 days and then forgotten, however many there are', async () => {
  const insert = (prefix: string, count: number, age: string) =>
    kit.pool.query(
      `insert into hook_deliveries (hook_id, webhook_id, run_id, received_at)
       select $1, $2 || n, $3, muster.now() - $5::interval from generate_series(1, $4::int) n`,
      [hook.id, prefix, newId(), count, age],
    )
  await insert('old ', 10_001, '30 days 1 second')
  await insert('young ', 3, '29 days 23:59:00')
  assert.equal(await pruneDeliveries(kit.pool), 10_001)
  const { rows } = await kit.pool.query<{ webhook_id: string }>('select webhook_id from hook_deliveries order by 1')
  assert.deepEqual(
    rows.map((row) => row.webhook_id),
    ['young 1', 'young 2', 'young 3'],
  )
  await kit.clock.advance(120_000)
  assert.equal(await pruneDeliveries(kit.pool), 3)
  assert.equal(await pruneDeliveries(kit.pool), 0)
})
