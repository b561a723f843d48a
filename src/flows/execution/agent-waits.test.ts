// Pipelines wait for the runs of their agents. A run with an undecided call is continued by another, which is awaited then.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../../../test/kit/database.ts'
import { insertProject } from '../../../test/kit/runs.ts'
import type { Db } from '../../db/pool.ts'
import { newId } from '../../kernel/id.ts'
import { createAgentWaits } from './agent-waits.ts'

const { pool } = await createTestDatabase()
const projectId = await insertProject(pool)

async function insertRun(status: string, reason: string | null, before: string | null = null): Promise<string> {
  const id = newId()
  await pool.query(
    `insert into agent_runs (id, project_id, agent_id, trigger, input, status, pause_reason, completed_at, resumed_from,
       base_run_id, base_seq)
     values ($1, $2, $3, '{"type": "flow"}', 'null', $4::text, $5, case when $4 <> 'running' then now() end, $6, $6,
       case when $6::uuid is not null then 0 end)`,
    [id, projectId, newId(), status, reason, before],
  )
  return id
}
const undecided = (): Promise<string> => insertRun('paused', 'outcome_unknown')

/** The database, with something to do before each look at the run that continues another. */
const withLook = (onLook: () => unknown): Db => {
  const query = async (sql: string, values: unknown[]) => {
    if (sql.includes('resumed_from = $1')) await onLook()
    return pool.query(sql, values)
  }
  return { query } as Db // the waits use this form of a query alone
}

test('a wait outlives a look that the database refused', { timeout: 20_000 }, async () => {
  const first = await undecided()
  let failures = 0
  const waits = createAgentWaits(
    withLook(() => {
      if (failures-- > 0) throw new Error('the database is away')
    }),
  )
  const waiting = waits.wait(first)
  await waits.check()
  const later = await insertRun('completed', null, first)
  failures = 1
  await assert.rejects(waits.check(), /the database is away/)
  await waits.check()
  assert.equal((await waiting).id, later)
})

test('a wait for the run that continues another is kept beside the wait for that one', {
  timeout: 20_000,
}, async () => {
  const first = await undecided()
  const later = await insertRun('running', null, first)
  const looks = Promise.withResolvers<void>()
  const looking = Promise.withResolvers<void>()
  const waits = createAgentWaits(
    withLook(() => {
      looking.resolve()
      return looks.promise
    }),
  )
  const waiting = waits.wait(first)
  await looking.promise
  const other = waits.wait(later)
  looks.resolve()
  await waits.check()
  await pool.query(`update agent_runs set status = 'completed', completed_at = now() where id = $1`, [later])
  await waits.check()
  const both = await Promise.all([waiting, other])
  assert.deepEqual(
    both.map(({ id }) => id),
    [later, later],
  )
})

test('a run that was asked to end and left a call undecided ends the wait', { timeout: 20_000 }, async () => {
  const waits = createAgentWaits(pool)
  const run = await undecided()
  await pool.query('update agent_runs set cancel_requested_at = now() where id = $1', [run])
  assert.equal((await waits.wait(run)).pauseReason, 'outcome_unknown')
})
