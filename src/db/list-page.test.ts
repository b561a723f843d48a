import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from '../../test/kit/database.ts'
import { recordStatements } from '../../test/kit/query-plans.ts'
import { newId } from '../kernel/id.ts'
import { LARGE_PAGE, listPage, type PageQuery } from './list-page.ts'

const { pool } = await createTestDatabase()
// The sequence counts the rows that a list goes through.
await pool.query(`
  create sequence looked_at;
  create table notes (id uuid primary key, created_at timestamptz not null, body jsonb, title text)`)

interface Note {
  id: string
  created_at: Date
  body: string | null
  title: string | null
}

/** Returns the ids newest first, as the list shows them. Two rows share each instant. */
async function insertNotes(sizes: readonly number[]): Promise<string[]> {
  await pool.query('truncate notes')
  const notes = sizes.map((size, place) => ({ id: newId(), size, place }))
  for (const { id, size, place } of notes) {
    await pool.query(
      `insert into notes values ($1, timestamptz '2026-01-01' - $2 * interval '1 s', to_jsonb(repeat('x', $3)), null)`,
      [id, Math.floor(place / 2), size],
    )
  }
  const { rows } = await pool.query<{ id: string }>('select id from notes order by created_at desc, id desc')
  return rows.map(({ id }) => id)
}

const list = (query: PageQuery, sql: string | string[] = 'select * from notes') =>
  listPage<Note, Note>(pool, { sql, values: [], query, toItem: (note) => note, largeColumns: ['body', 'title'] })

async function readAll(limit: number, sql?: string | string[]): Promise<Note[][]> {
  const pages: Note[][] = []
  for (let cursor: string | undefined; ; ) {
    const page = await list({ limit, cursor }, sql)
    pages.push(page.items)
    if (page.next_cursor === null) return pages
    cursor = page.next_cursor
  }
}

const idsOf = (pages: Note[][]): string[] => pages.flat().map(({ id }) => id)
const bytesOf = (page: Note[]): number => page.reduce((sum, { body }) => sum + (body?.length ?? 0), 0)

test('no page of large rows holds more than the bound, and the pages together miss and repeat nothing', async () => {
  const ids = await insertNotes(Array.from({ length: 23 }, (_, place) => (place % 3 === 0 ? 10 : 1_000_000)))
  const byBody = ['select * from notes where body <> \'""\'', 'select * from notes where body = \'""\'']
  for (const sql of [undefined, byBody]) {
    const pages = await readAll(200, sql)
    assert.deepEqual(idsOf(pages), ids)
    assert.ok(pages.every((page) => page.length > 0 && bytesOf(page) <= LARGE_PAGE))
    assert.equal(pages.length, 4)
  }
})

test('a row that is larger than the bound is a page of its own', async () => {
  const ids = await insertNotes([10, 10, LARGE_PAGE + 1, LARGE_PAGE + 1, 10, 10])
  const pages = await readAll(200)
  assert.deepEqual(idsOf(pages), ids)
  assert.deepEqual(
    pages.map((page) => page.length),
    [2, 1, 1, 2],
  )
})

test('small rows fill a page to its limit, and rows hold no columns of the list itself', async () => {
  const ids = await insertNotes(Array.from({ length: 45 }, () => 10))
  const pages = await readAll(40)
  assert.deepEqual(idsOf(pages), ids)
  assert.deepEqual(
    pages.map((page) => page.length),
    [40, 5],
  )
  assert.deepEqual(Object.keys(pages[0]?.[0] ?? {}), ['id', 'created_at', 'body', 'title'])
  await pool.query('truncate notes')
  assert.deepEqual(await list({ limit: 5 }), { items: [], next_cursor: null })
})

test('a page is one statement that finds its rows once and measures large values no further than it needs', async () => {
  await insertNotes(Array.from({ length: 60 }, () => 1_000_000))
  await pool.query('update notes set title = id::text')
  const recording = recordStatements(pool)
  // A search finds its rows at a cost; each row that it goes through counts.
  const searched = await list({ limit: 50 }, "select * from notes where nextval('looked_at') > 0")
  recording.stop()
  assert.equal(searched.items.length, 4)
  assert.equal(recording.statements.length, 1)
  const { rows } = await pool.query<{ last_value: number }>('select last_value from looked_at')
  assert.equal(rows[0]?.last_value, 60)
  const { text = '', values = [] } = recording.statements[0] ?? {}
  const { rows: plan } = await pool.query<{ 'QUERY PLAN': string }>(`explain (analyze, timing off) ${text}`, [
    ...values,
  ])
  const steps = plan.map((row) => row['QUERY PLAN']).find((line) => line.includes('Recursive Union'))
  assert.match(steps ?? '', /actual rows=5(\.00)? /) // four that fit, and one that does not
})
