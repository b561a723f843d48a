import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../../test/kit/database.ts'
import { buryWorker, insertProject, insertRuns, insertWorker } from '../../test/kit/runs.ts'
import { setHalted } from '../identity/projects.ts'
import { newId } from '../kernel/id.ts'
import { systemActor } from '../kernel/principal.ts'
import { addWait, noteAnswer, noteBusy, noteOutage, releaseDue, takeReleased } from './provider-outages.ts'

const { pool, clock } = await createTestDatabase()

let named = 0
async function createOutage(retryAfterMs: number | null = null) {
  await pool.query('truncate provider_waits, provider_outages')
  const model = { provider: 'acme', name: `model ${++named}` }
  await noteOutage(pool, model, { message: 'Down.', retryAfterMs })
  const read = async () => (await pool.query('select * from provider_outages where model = $1', [model.name])).rows[0]
  /** A run that sleeps until it is let go. */
  const wait = async (projectId: string, waits = 1): Promise<string> => {
    const [id = ''] = await insertRuns(pool, projectId, 1)
    await pool.query(
      `update agent_runs set status = 'paused', pause_reason = 'unavailable', waits_for = 'provider' where id = $1`,
      [id],
    )
    await addWait(pool, { ...model, id, projectId, waits })
    return id
  }
  return { model, read, wait }
}

/** The runs that are ready, and then are not any more. */
async function takeReady(): Promise<string[]> {
  const { rows } = await pool.query<{ id: string }>(
    'update agent_runs set ready_at = null, waits_for = null where ready_at is not null returning id',
  )
  return rows.map((row) => row.id)
}

test('runs are dealt over projects, and within a project those that waited less often come first', async () => {
  const { model, wait } = await createOutage()
  const projects = [await insertProject(pool), await insertProject(pool), await insertProject(pool)].toSorted()
  const [a = '', b = '', c = ''] = projects
  const often = await wait(a, 3)
  const ofA = [await wait(a), await wait(a)]
  const [ofB, ofC] = [await wait(b), await wait(c)]
  await clock.advance(2_000)
  assert.equal(await releaseDue(pool), 1)
  assert.deepEqual(await takeReady(), [ofA[0]])
  assert.deepEqual(await noteAnswer(pool, model), { runs: 2, isOver: false })
  assert.deepEqual((await takeReady()).toSorted(), [ofB, ofC].toSorted())
  assert.deepEqual(await noteAnswer(pool, model), { runs: 2, isOver: true })
  assert.deepEqual((await takeReady()).toSorted(), [ofA[1], often].toSorted())
})

test('after a refusal among answers, each answer lets one go, until it is a while ago', async () => {
  const { model, wait } = await createOutage()
  const project = await insertProject(pool)
  for (let run = 0; run < 9; run++) await wait(project)
  assert.equal((await noteAnswer(pool, model)).runs, 2)
  await noteBusy(pool, model)
  assert.equal((await noteAnswer(pool, model)).runs, 1)
  await clock.advance(5_001)
  assert.equal((await noteAnswer(pool, model)).runs, 2)
  await takeReady()
})

test('of many processes that see the same turn, one lets one go', async () => {
  const { wait } = await createOutage()
  const project = await insertProject(pool)
  for (let run = 0; run < 5; run++) await wait(project)
  await clock.advance(2_000)
  const released = await Promise.all(Array.from({ length: 6 }, () => releaseDue(pool)))
  assert.equal(
    released.reduce((sum, each) => sum + each),
    1,
  )
  await takeReady()
})

test('the failures of others do not make the wait longer, the failure of the one that was let go does', async () => {
  const { model, read, wait } = await createOutage()
  const project = await insertProject(pool)
  for (let run = 0; run < 3; run++) await wait(project)
  for (let other = 0; other < 5; other++) await noteOutage(pool, model, { message: 'Down.', retryAfterMs: null })
  assert.equal((await read()).failures, 1)
  await clock.advance(2_000)
  await releaseDue(pool)
  await noteOutage(pool, model, { message: 'Still down.', retryAfterMs: null })
  const { failures, message, next_try_at: next, failed_at: at } = await read()
  assert.deepEqual([failures, message, next.getTime() - at.getTime()], [2, 'Still down.', 4_000])
  await takeReady()
})

test('runs that were cancelled, and runs of halted projects, do not take a turn', async () => {
  const { model, wait } = await createOutage()
  const [halted, open] = [await insertProject(pool), await insertProject(pool)]
  const asleep = await wait(halted)
  const cancelled = [await wait(open), await wait(open)]
  await pool.query(`update agent_runs set completed_at = muster.now(), status = 'cancelled' where id = any($1)`, [
    cancelled,
  ])
  const next = await wait(open)
  await setHalted(pool, halted, true, systemActor)
  await clock.advance(2_000)
  assert.equal(await releaseDue(pool), 1)
  assert.deepEqual(await takeReady(), [next])
  await setHalted(pool, halted, false, systemActor)
  assert.deepEqual(await noteAnswer(pool, model), { runs: 1, isOver: true })
  assert.deepEqual(await takeReady(), [asleep])
})

test('no answer of another call lets one go before Retry-After', async () => {
  const { model, read, wait } = await createOutage(3_600_000)
  const project = await insertProject(pool)
  await wait(project)
  assert.deepEqual(await noteAnswer(pool, model), { runs: 0, isOver: false })
  await clock.advance(3_500_000)
  assert.equal(await releaseDue(pool), 0)
  await clock.advance(101_000)
  assert.equal(await releaseDue(pool), 1)
  await takeReady()
  assert.deepEqual(await noteAnswer(pool, model), { runs: 0, isOver: true })
  assert.equal(await read(), undefined)
})

test('a Retry-After of a million years is a wait', async () => {
  const { read } = await createOutage(1e18)
  assert.ok((await read()).next_try_at > new Date())
})

test('calls of functions are let go like runs, and those of a dead process do not wait any more', async () => {
  const { model } = await createOutage()
  const projectId = await insertProject(pool)
  const [alive, dead] = [await insertWorker(pool), await insertWorker(pool)]
  const [one, two] = [newId(), newId()]
  await addWait(pool, { ...model, id: one, projectId, waits: 0, workerId: alive })
  await addWait(pool, { ...model, id: two, projectId, waits: 1, workerId: dead })
  assert.deepEqual(await takeReleased(pool, [one]), [])
  await clock.advance(2_000)
  await releaseDue(pool)
  assert.deepEqual(await takeReleased(pool, [one, two]), [one])
  await buryWorker(pool, dead)
  assert.equal((await pool.query('select from provider_waits where id = $1', [two])).rowCount, 0)
})
