import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTestDatabase } from './kit/database.ts'

test('every foreign key has an index that finds all rows that refer to a row', async () => {
  const { pool } = await createTestDatabase()
  // A partial index serves if its predicate follows from the comparison itself: "column is not null".
  const { rows } = await pool.query<{ key: string }>(
    `select format('%s (%s)', c.conrelid::regclass, string_agg(a.attname, ', ' order by k.place)) as key
     from pg_constraint c
     cross join lateral unnest(c.conkey) with ordinality as k (attnum, place)
     join pg_attribute a on a.attrelid = c.conrelid and a.attnum = k.attnum
     where c.contype = 'f' and not exists (
       select from pg_index i
       where i.indrelid = c.conrelid and i.indisvalid
         and (i.indkey::int2[])[0:cardinality(c.conkey) - 1] @> c.conkey
         and (i.indpred is null or pg_get_expr(i.indpred, i.indrelid) = format('(%I IS NOT NULL)', (
           select attname from pg_attribute where attrelid = c.conrelid and attnum = c.conkey[1])))
     )
     group by c.oid, c.conrelid order by 1`,
  )
  assert.deepEqual(
    rows.map((row) => row.key),
    [],
  )
})
