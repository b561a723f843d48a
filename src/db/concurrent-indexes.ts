// Migrations that begin with `-- no transaction` make and drop indexes beside reads and writes, which PostgreSQL does
// only outside of a transaction. A file like that may hold no other statements, because a crash leaves it half done and
// the next start runs it again: a valid index is left alone, an invalid one is made anew.
import pg from 'pg'

const HEADER = /^-- no transaction\b/m
const STATEMENT =
  /^(create(?: unique)?|drop) index concurrently (?:if (?:not )?exists )?([a-z_][a-z0-9_.]*)(?: on [^;]+)?$/s

interface IndexStatement {
  sql: string
  index: string
  isCreated: boolean
}

/** Null for an ordinary migration. Throws if a file without a transaction holds any other statement. */
export function indexStatements(name: string, sql: string): IndexStatement[] | null {
  if (!HEADER.test(sql)) return null
  const statements = sql.replaceAll(/--[^\n]*/g, '').split(';')
  return statements
    .map((text) => text.trim())
    .filter((text) => text !== '')
    .map((text) => {
      const [, verb, index] = STATEMENT.exec(text) ?? []
      if (verb === undefined || index === undefined) {
        throw new Error(`Migration ${name} has no transaction, so it may only make and drop indexes concurrently.`)
      }
      return { sql: text, index, isCreated: verb !== 'drop' }
    })
}

/** Rewrites the SQL for a database that nobody else uses yet, to run within a transaction. */
export const withinTransaction = (sql: string): string =>
  HEADER.test(sql) ? sql.replaceAll(/\bindex concurrently\b/g, 'index') : sql

export async function changeIndex(client: pg.Client, statement: IndexStatement): Promise<void> {
  const { rows } = await client.query<{ valid: boolean }>(
    'select indisvalid and indisready as valid from pg_index where indexrelid = to_regclass($1)',
    [statement.index],
  )
  const [found] = rows
  if (statement.isCreated && found?.valid) return
  if (!statement.isCreated && !found) return
  if (statement.isCreated && found) await client.query(`drop index concurrently ${quoted(statement.index)}`)
  await client.query(statement.sql)
}

const quoted = (name: string): string => name.split('.').map(pg.escapeIdentifier).join('.')
