// Records every statement that a pool sends, and measures its cost: the large tables that the statement reads from end
// to end, and the number of buffers that it touches. Statements are executed once more under `explain analyze`, in a
// transaction that is rolled back, so that inserts, updates and deletes are measured too, with their triggers and their
// foreign keys.
import pg from 'pg'
import { isUniqueViolation } from '../../src/db/failures.ts'
import type { Client, Pool } from '../../src/db/pool.ts'

export interface Recorded {
  /** The name of a prepared statement; null for a statement that is sent as text. */
  name: string | null
  text: string
  values: readonly unknown[]
}

export interface Recording {
  statements: readonly Recorded[]
  /** Forgets the statements so far. */
  clear(): void
  stop(): void
}

export interface QueryPlan {
  text: string
  values: readonly unknown[]
  /** A prepared statement may be planned for its values or for any values; both plans are read. */
  mode: 'custom' | 'generic'
  /** The large tables that the statement, its triggers or its foreign keys read from end to end. */
  sequentialScans: { table: string; rows: number }[]
  /** Blocks of our tables and indexes that were touched, triggers and foreign keys included. */
  buffers: number
  /** Rows that the statement returned or changed. */
  rows: number
  /** The plan as PostgreSQL prints it, for the message of a test that fails. */
  explained: string
}

/** Records the statements of all connections of the pool, inside transactions too, until it is stopped. */
export function recordStatements(pool: Pool): Recording {
  const statements: Recorded[] = []
  const watched = new Set<Client>()
  // `pool.query` takes a connection like every caller, and the pool reports each connection that it hands out.
  const onAcquire = (client: Client): void => {
    if (watched.has(client)) return
    watched.add(client)
    const send = client.query
    const recorded = (...args: unknown[]): unknown => {
      const statement = readStatement(args)
      if (statement) statements.push(statement)
      return Reflect.apply(send, client, args)
    }
    // The driver's method has twelve overloads; each of them passes through unchanged.
    client.query = recorded as unknown as Client['query']
  }
  pool.on('acquire', onAcquire)
  return {
    statements,
    clear: () => {
      statements.length = 0
    },
    stop: () => {
      pool.off('acquire', onAcquire)
      for (const client of watched) Reflect.deleteProperty(client, 'query')
    },
  }
}

/** The cost of a statement when it was sent. */
export type Measured = Pick<QueryPlan, 'text' | 'values' | 'sequentialScans' | 'buffers'> & { rows: number }

/**
 * Measures each statement during its real execution, for work that no longer exists when the statement is explained
 * later. This is slow, because the counters are read before and after each statement.
 */
export function measureStatements(
  pool: Pool,
  { large }: { large: readonly string[] },
): { measured: readonly Measured[]; stop(): void } {
  const measured: Measured[] = []
  const watched = new Set<Client>()
  const onAcquire = (client: Client): void => {
    if (watched.has(client)) return
    watched.add(client)
    const send = client.query.bind(client) as (...args: unknown[]) => Promise<pg.QueryResult> // without a callback
    let isInTransaction = false
    const measure = async (args: unknown[]): Promise<pg.QueryResult> => {
      const statement = readStatement(args)
      if (!statement || !EXPLAINABLE.test(statement.text)) {
        if (/^\s*(begin|commit|rollback)/i.test(statement?.text ?? '')) isInTransaction = statement?.text === 'begin'
        return send(...args)
      }
      // Between transactions PostgreSQL may flush the counters, which then begin at zero.
      if (!isInTransaction) await send('begin')
      try {
        const before = await readCounters(send)
        const result = await send(...args)
        const after = await readCounters(send)
        const { text, values } = statement
        measured.push({ text, values, rows: result.rowCount ?? 0, ...difference(before, after, large) })
        return result
      } finally {
        if (!isInTransaction) await send('commit')
      }
    }
    const watching = (...args: unknown[]): unknown => {
      const callback = args.at(-1)
      if (typeof callback !== 'function') return measure(args)
      measure(args.slice(0, -1)).then(
        (result) => callback(null, result),
        (error) => callback(error),
      )
      return undefined
    }
    // The same method with its overloads as above.
    client.query = watching as unknown as Client['query']
  }
  pool.on('acquire', onAcquire)
  return {
    measured,
    stop: () => {
      pool.off('acquire', onAcquire)
      for (const client of watched) Reflect.deleteProperty(client, 'query')
    },
  }
}

function readStatement([config, values]: readonly unknown[]): Recorded | null {
  if (typeof config === 'string') return { name: null, text: config, values: Array.isArray(values) ? values : [] }
  if (typeof config !== 'object' || config === null || !('text' in config)) return null
  const { text, name, values: inside } = config as { text: string; name?: string; values?: unknown[] } // as the driver takes it
  return { name: name ?? null, text, values: Array.isArray(values) ? values : (inside ?? []) }
}

const EXPLAINABLE = /^\s*(select|with|insert|update|delete|merge)\b/i

/**
 * The plans of the distinct statements, each with its last values. `large` names the tables whose sequential scans
 * count.
 */
export async function readPlans(
  pool: Pool,
  statements: readonly Recorded[],
  { large }: { large: readonly string[] },
): Promise<QueryPlan[]> {
  const distinct = new Map(statements.filter(({ text }) => EXPLAINABLE.test(text)).map((each) => [each.text, each]))
  const plans: QueryPlan[] = []
  for (const statement of distinct.values()) {
    for (const mode of statement.name === null ? (['custom'] as const) : (['custom', 'generic'] as const)) {
      try {
        plans.push(await readPlan(pool, statement, mode, large))
      } catch (error) {
        // The statement's rows exist already, so it cannot be executed again. `measureStatements` measures its cost.
        if (!isUniqueViolation(error)) throw error
      }
    }
  }
  return plans
}

async function readPlan(
  pool: Pool,
  { text, values }: Recorded,
  mode: QueryPlan['mode'],
  large: readonly string[],
): Promise<QueryPlan> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    // Reads of parallel workers are not counted in this session.
    await client.query(`set local plan_cache_mode = force_${mode}_plan; set local max_parallel_workers_per_gather = 0`)
    const explain = 'explain (analyze, buffers, timing off, format json)'
    const isGeneric = mode === 'generic' && values.length > 0
    if (isGeneric) await client.query(`prepare measured as ${text}`)
    const read = (sql: string) => client.query<Counter>(sql)
    const before = await readCounters(read)
    const { rows } = await (isGeneric
      ? client.query(`${explain} execute measured(${values.map(literal).join(', ')})`)
      : client.query(`${explain} ${text}`, [...values]))
    const after = await readCounters(read)
    const [plan] = rows[0]['QUERY PLAN'] as [{ Plan: PlanNode }] // format json returns one row with one plan
    return { text, values, mode, ...difference(before, after, large), ...summaryOf(plan.Plan) }
  } finally {
    // The session is closed with its prepared statement and its locks.
    client.release(true)
  }
}

interface Counter {
  name: string
  table: string | null
  scans: number
  rows: number
  blocks: number
}

/** This session's reads of each relation so far; the statistics count those of triggers and foreign keys too. */
async function readCounters(send: (sql: string) => Promise<pg.QueryResult<Counter>>): Promise<Map<string, Counter>> {
  const { rows } = await send(
    `select c.oid::text as name, case when c.relkind in ('r', 'p') then c.relname end as table,
       case when c.relkind in ('r', 'p') then pg_stat_get_xact_numscans(c.oid) else 0 end as scans,
       case when c.relkind in ('r', 'p') then pg_stat_get_xact_tuples_returned(c.oid) else 0 end as rows,
       pg_stat_get_xact_blocks_fetched(c.oid) as blocks
     from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relkind in ('r', 'p', 'i', 't') and n.nspname in ('public', 'auth', 'pg_toast')`,
  )
  return new Map(rows.map((row) => [row.name, row]))
}

function difference(
  before: ReadonlyMap<string, Counter>,
  after: ReadonlyMap<string, Counter>,
  large: readonly string[],
): Pick<QueryPlan, 'sequentialScans' | 'buffers'> {
  const sequentialScans: QueryPlan['sequentialScans'] = []
  let buffers = 0
  for (const [name, { table, scans, rows, blocks }] of after) {
    const was = before.get(name) ?? { scans: 0, rows: 0, blocks: 0 }
    buffers += blocks - was.blocks
    if (table !== null && large.includes(table) && scans > was.scans) {
      sequentialScans.push({ table, rows: rows - was.rows })
    }
  }
  return { sequentialScans, buffers }
}

interface PlanNode {
  'Node Type': string
  'Relation Name'?: string
  'Index Name'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  'Shared Hit Blocks': number
  'Shared Read Blocks': number
  Plans?: PlanNode[]
}

const summaryOf = (plan: PlanNode): Pick<QueryPlan, 'rows' | 'explained'> => ({
  rows: plan['Actual Rows'],
  explained: linesOf(plan, 0).join('\n'),
})

function linesOf(node: PlanNode, depth: number): string[] {
  const place = [node['Relation Name'], node['Index Name']].filter((name) => name !== undefined).join(' by ')
  const dropped = node['Rows Removed by Filter'] ?? 0
  const blocks = node['Shared Hit Blocks'] + node['Shared Read Blocks']
  return [
    `${'  '.repeat(depth)}${node['Node Type']} ${place} rows=${node['Actual Rows']}×${node['Actual Loops']}` +
      `${dropped > 0 ? ` dropped=${dropped}` : ''} buffers=${blocks}`,
    ...(node.Plans ?? []).flatMap((child) => linesOf(child, depth + 1)),
  ]
}

/** A value as an untyped SQL literal, like a value in the protocol, because `execute` takes no parameters. */
function literal(value: unknown): string {
  if (value === null || value === undefined) return 'null'
  if (Array.isArray(value)) return pg.escapeLiteral(arrayText(value))
  if (value instanceof Date) return pg.escapeLiteral(value.toISOString())
  if (Buffer.isBuffer(value)) return pg.escapeLiteral(`\\x${value.toString('hex')}`)
  return pg.escapeLiteral(typeof value === 'object' ? JSON.stringify(value) : String(value))
}

function arrayText(items: readonly unknown[]): string {
  const texts = items.map((item) => {
    if (item === null || item === undefined) return 'null'
    if (Array.isArray(item)) return arrayText(item)
    const text = item instanceof Date ? item.toISOString() : String(item)
    return `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
  })
  return `{${texts.join(',')}}`
}
