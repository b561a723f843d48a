import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../../test/kit/database.ts'
import { insertProject } from '../../test/kit/runs.ts'
import { inTransaction } from '../db/transaction.ts'
import { systemActor } from '../kernel/principal.ts'
import { byPerson } from './author.ts'
import { listRelationships, type RelateOutcome, relate } from './relationships.ts'
import { createObjectWriter } from './write-objects.ts'
import { nothingSetOff } from './write-statements.ts'

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
