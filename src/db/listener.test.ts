import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../../test/kit/database.ts'
import { until } from '../../test/kit/until.ts'
import { silentLog } from '../kernel/log.ts'
import { startListener } from './listener.ts'

const { pool, url } = await createTestDatabase()

test('a first connection that fails is reported to the caller, and its later end raises no exception', async () => {
  const listener = startListener({
    url,
    log: silentLog,
    answersWithinMs: 5_000,
    channels: ['a_channel'],
    onNotification: () => {},
    onConnect: async () => {
      throw new Error('not yet')
    },
  })
  await assert.rejects(listener, /not yet/)
  // The end of the connection is heard later; an exception in that moment fails this file.
  await until(async () => {
    const { rowCount } = await pool.query(
      `select from pg_stat_activity where application_name = 'muster-listener' and datname = current_database()`,
    )
    return rowCount === 0
  }, 'the connection is closed')
  await new Promise((resolve) => setImmediate(resolve))
})
