import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../../test/kit/database.ts'
import { nothingSetOff } from '../../test/kit/nothing-set-off.ts'
import { readPlans, recordStatements } from '../../test/kit/query-plans.ts'
import { insertProject } from '../../test/kit/runs.ts'
import { inTransaction } from '../db/transaction.ts'
import { systemActor } from '../kernel/principal.ts'
import { byPerson } from './author.ts'
import { listRelationships, type RelateOutcome, relate } from './relationships.ts'
import { createObjectWriter } from './write-objects.ts'

const { pool } = await createTestDatabase()
const projectId = await insertProject(pool)
const writer = createObjectWriter({ pool, setsOff: nothingSetOff })
const author = byPerson(systemActor)

async function create(): Promise<string> {
  const change = { op: 'create', type: 'Thing', key: null, properties: {} } as const
  const outcome = await writer.write({ projectId, change, author })
  return outcome.kind === 'written' ? outcome.object.id : assert.fail()
}
const deletion = (id: string) => ({ projectId, change: { op: 'delete', id, expectedVersion: null }, author }) as const
const relation = (fromId: string, toId: string) => ({
  projectId,
  change: { op: 'relate', type: 'leads_to', fromId, toId, properties: {} } as const,
  author,
})

/** Resolves when a connection to this database waits for a lock that another one holds. */
async function somebodyWaits(): Promise<void> {
  for (;;) {
    const { rowCount } = await pool.query(
      `select from pg_stat_activity where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0`,
    )
    if (rowCount) return
  }
}

for (const isFrom of [true, false]) {
  test(`a deletion that waited for an edge ${isFrom ? 'from' : 'to'} the object takes the edge with it`, async () => {
    const [doomed, other] = [await create(), await create()]
    let deleted: ReturnType<typeof writer.write> | undefined
    await inTransaction(pool, async (tx) => {
      const ends = isFrom ? ([doomed, other] as const) : ([other, doomed] as const)
      assert.equal((await relate(tx, relation(...ends))).kind, 'related')
      deleted = writer.write(deletion(doomed))
      await somebodyWaits()
    })
    assert.equal((await deleted)?.kind, 'written')
    assert.deepEqual((await listRelationships(pool, other, { limit: 10 })).items, [])
  })
}

test('an edge that waited for the deletion of its end is not made', async () => {
  const [doomed, other] = [await create(), await create()]
  let related: Promise<RelateOutcome> | undefined
  await inTransaction(pool, async (tx) => {
    assert.equal((await writer.writeIn(tx, deletion(doomed))).kind, 'written')
    related = inTransaction(pool, (second) => relate(second, relation(other, doomed)))
    await somebodyWaits()
  })
  assert.deepEqual(await related, { kind: 'missing' })
  assert.deepEqual((await listRelationships(pool, other, { limit: 10 })).items, [])
})

test("a page of an object's relationships is newest first, and lists a relationship to itself once", async () => {
  const [object, other] = [await create(), await create()]
  const made: string[] = []
  for (const ends of [
    [object, other],
    [other, object],
    [object, object],
  ] as const) {
    const outcome = await relate(pool, relation(...ends))
    made.unshift(outcome.kind === 'related' ? outcome.relationship.id : assert.fail())
  }
  const first = await listRelationships(pool, object, { limit: 2 })
  const second = await listRelationships(pool, object, { limit: 2, cursor: first.next_cursor ?? assert.fail() })
  assert.deepEqual(
    [...first.items, ...second.items].map(({ id }) => id),
    made,
  )
  assert.equal(second.next_cursor, null)
})

test('a page reads no more rows than it shows, however many relationships the object has or had', async () => {
  const [object, other] = [await create(), await create()]
  await pool.query(
    `insert into relationships (id, project_id, type, from_id, to_id, actor_type, created_at, deleted_at)
     select gen_random_uuid(), $1, 'edge ' || n, case when n % 2 = 0 then $2::uuid else $3 end,
       case when n % 2 = 0 then $3::uuid else $2 end, 'user', muster.now() + n * interval '1 ms',
       case when n > 30000 then muster.now() end
     from generate_series(1, 60000) n`,
    [projectId, object, other],
  )
  await pool.query('analyze relationships')
  const recording = recordStatements(pool)
  const first = await listRelationships(pool, object, { limit: 50 })
  await listRelationships(pool, object, { limit: 50, cursor: first.next_cursor ?? assert.fail() })
  recording.stop()
  const plans = await readPlans(pool, recording.statements, { large: ['relationships'] })
  assert.ok(plans.length >= 2)
  for (const { rows, buffers, explained } of plans) {
    assert.equal(rows, 51)
    assert.ok(buffers < 150, `${buffers} buffers\n${explained}`)
  }
})
