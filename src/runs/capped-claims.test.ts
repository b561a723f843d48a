// Projects that cap their runs have their turns among all others, and cost nothing while they are idle.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../../test/kit/database.ts'
import { recordStatements } from '../../test/kit/query-plans.ts'
import { insertProject, insertWorker } from '../../test/kit/runs.ts'
import { insertRun } from '../journal/insert-run.ts'
import { newId } from '../kernel/id.ts'
import { NO_PROJECT } from '../queue/queue-table.ts'
import { createSlots } from '../queue/slots.ts'
import { createCappedClaims } from './capped-claims.ts'
import { createRoutedClaims } from './routed-claims.ts'

const { pool } = await createTestDatabase()

async function addRuns(projectId: string, count: number): Promise<void> {
  for (let index = 0; index < count; index++) {
    const trigger = { type: 'manual' }
    await insertRun(pool, {
      id: newId(),
      projectId,
      agentId: newId(),
      trigger,
      input: 'x',
      maxSteps: null,
      timeoutMs: null,
    })
  }
}

/** A process with this many slots, whose runs end when the test ends them. */
async function createProcess(count: number, caps: ReadonlyMap<string, number>) {
  const owner = await insertWorker(pool)
  const slots = createSlots(count)
  const claims = createCappedClaims({ pool, slots, routed: createRoutedClaims({ pool, tools: null }) })
  const switches = { halted: new Set<string>(), deleted: new Set<string>(), limited: new Set<string>(), caps }
  let cursor = NO_PROJECT
  return {
    claim: async () => {
      const ask = { owner, free: slots.free(), kept: slots.kept, cursor, ...slots.underWay() }
      const dealt = await claims.claim(ask, switches)
      cursor = dealt.cursor
      for (const run of dealt.claimed) slots.take(run.project_id)
      return dealt.claimed.map((run) => ({ id: run.id, projectId: run.project_id }))
    },
    end: async ({ id, projectId }: { id: string; projectId: string }) => {
      await pool.query(`update agent_runs set owner = null, status = 'completed' where id = $1`, [id])
      slots.release(projectId)
      claims.onEnd(projectId)
    },
  }
}

test('a project with a cap has its turn although others could fill every slot', async () => {
  const busy = await Promise.all([1, 2, 3, 4, 5, 6].map(() => insertProject(pool)))
  const capped = await insertProject(pool)
  for (const projectId of busy) await addRuns(projectId, 20)
  await addRuns(capped, 2)
  const process = await createProcess(4, new Map([[capped, 5]]))
  const underWay = await process.claim()
  let turns = 0
  while (!underWay.some((run) => run.projectId === capped)) {
    assert.ok(turns < 2 * busy.length, 'every other project had a turn, and a second one')
    const run = underWay.shift()
    if (run) await process.end(run)
    underWay.push(...(await process.claim()))
    turns++
  }
})

test('the cap holds, and free slots go to a capped project as far as the cap allows', async () => {
  const capped = await insertProject(pool)
  await addRuns(capped, 10)
  await pool.query('update agent_runs set ready_at = null where project_id <> $1', [capped])
  const process = await createProcess(20, new Map([[capped, 3]]))
  const first = await process.claim()
  assert.equal(first.length, 3)
  assert.deepEqual(await process.claim(), [])
  if (first[0]) await process.end(first[0])
  assert.equal((await process.claim()).length, 1)
})

test('capped projects without ready runs are not asked', async () => {
  await pool.query('update agent_runs set ready_at = null')
  const caps = new Map<string, number>()
  for (let index = 0; index < 50; index++) caps.set(await insertProject(pool), 1)
  const busy = await insertProject(pool)
  await addRuns(busy, 1)
  const process = await createProcess(4, caps)
  const recording = recordStatements(pool)
  assert.equal((await process.claim()).length, 1)
  recording.stop()
  const asked = recording.statements.filter(({ text }) => /agent_runs|projects/.test(text))
  assert.equal(asked.length, 1)
})
