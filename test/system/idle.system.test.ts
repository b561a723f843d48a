// An idle server sends the database few statements, although every process asks every second.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createTestDatabase } from '../kit/database.ts'
import { startMuster } from '../kit/process.ts'

/** The number of transactions; a statement outside of a transaction counts as one. */
const MOST_PER_SECOND = 12
const SECONDS = 10

test('an idle server sends the database a dozen statements a second at most', async (t) => {
  const { pool, url } = await createTestDatabase()
  await startMuster(t, { databaseUrl: url, env: { MUSTER_DEMO: 'off' } })
  const count = async (): Promise<number> => {
    const { rows } = await pool.query<{ count: number }>(
      'select xact_commit + xact_rollback as count from pg_stat_database where datname = current_database()',
    )
    return rows[0]?.count ?? 0
  }
  // The first rounds prepare statements and look for the leftovers of an earlier process; a session that is idle
  // reports its transactions after ten seconds.
  await sleep(13_000)
  const before = await count()
  await sleep(SECONDS * 1_000)
  const perSecond = ((await count()) - before) / SECONDS
  assert.ok(perSecond > 1, 'it is alive')
  assert.ok(perSecond <= MOST_PER_SECOND, `${perSecond.toFixed(1)} a second`)
})
