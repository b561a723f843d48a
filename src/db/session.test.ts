// The sessions of Muster's connections: their settings, and poolers that keep no session.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createTestDatabase } from '../../test/kit/database.ts'
import { startPooler } from '../../test/kit/pooler.ts'
import { silentLog } from '../kernel/log.ts'
import { serverArguments } from './embedded/server-settings.ts'
import { createPool, type Db } from './pool.ts'
import { requireSessions } from './session.ts'

const { pool, url } = await createTestDatabase()
const wholeFile = { after }

const setting = async (db: Db, name: string): Promise<string | undefined> =>
  (await db.query<{ value: string }>('select current_setting($1) as value', [name])).rows[0]?.value

test('a connection has our settings, whatever the database says', async () => {
  const name = new URL(url).pathname.slice(1)
  await pool.query(`alter database "${name}" set jit = on`)
  await pool.query(`alter database "${name}" set datestyle = 'SQL, DMY'`)
  const other = createPool({ url, max: 1, log: silentLog, statementTimeoutMs: 7_000 })
  try {
    assert.equal(await setting(other, 'jit'), 'off')
    assert.equal(await setting(other, 'search_path'), 'public')
    assert.match((await setting(other, 'datestyle')) ?? '', /^ISO/)
    assert.equal(await setting(other, 'statement_timeout'), '7s')
    assert.equal(await setting(other, 'lock_timeout'), '10s')
    assert.equal(await setting(other, 'idle_in_transaction_session_timeout'), '15s')
  } finally {
    await other.end()
  }
})

test('a database that is reached directly keeps our sessions', async () => {
  await requireSessions(url)
})

test('a pooler in session mode is accepted, and its connections have our settings', async () => {
  const pooler = await startPooler(wholeFile, url, 'session')
  await requireSessions(pooler.url)
  const through = createPool({ url: pooler.url, max: 2, log: silentLog })
  try {
    assert.equal(await setting(through, 'jit'), 'off')
    assert.equal(await setting(through, 'lock_timeout'), '10s')
  } finally {
    await through.end()
  }
})

test('a pooler in transaction mode is refused with one sentence', async () => {
  const pooler = await startPooler(wholeFile, url, 'transaction')
  await assert.rejects(requireSessions(pooler.url), (error) => {
    assert.ok(error instanceof Error)
    assert.equal(
      error.message,
      'DATABASE_URL leads to a pooler in transaction mode, and Muster needs sessions of its own: use session mode, or connect directly.',
    )
    return true
  })
})

test('the vacuum settings of a table are stored in the table, not on the command line of our own server', async () => {
  const named = serverArguments('/nowhere', 1).filter((argument) => /scale_factor|threshold/.test(argument))
  assert.deepEqual(named, [])
  const { rows } = await pool.query<{ name: string }>(
    `select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname = 'public' and c.relkind = 'r' and c.reloptions::text ~ 'autovacuum_analyze_scale_factor=0.0[25]'
     order by 1`,
  )
  const own = new Set(rows.map(({ name }) => name))
  const busy = ['agent_runs', 'agent_tokens', 'flow_events', 'flow_handouts', 'flow_runs', 'run_events', 'tasks']
  assert.deepEqual(
    busy.filter((name) => !own.has(name)),
    [],
  )
})
