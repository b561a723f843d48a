// PostgreSQL's catalogue of the tables in a backup. Backup and restore ask the same questions of their databases.
import pg from 'pg'
import type { Db } from './pool.ts'

export interface TableName {
  schema: string
  name: string
}

export interface CatalogTable extends TableName {
  oid: number
  /** The columns that an insert sets; generated columns are left out. */
  columns: string[]
  /** False for a table of another owner in a shared database. */
  isOurs: boolean
}

export interface CatalogSequence extends TableName {
  oid: number
  /** The column that takes its values from the sequence, if they rise. */
  feeds: (TableName & { column: string }) | null
}

export interface ForeignKey extends TableName {
  constraint: string
  definition: string
}

export interface Trigger extends TableName {
  trigger: string
  mode: 'enable' | 'enable always' | 'enable replica'
}

// A table is ours if the migrating role or the present role owns it: managed databases bring schemas of their own.
const ownership = `c.relowner in (
  (select oid from pg_roles where rolname = current_user),
  (select relowner from pg_class where oid = to_regclass('muster.migrations')))`

const isOfUsers = `n.nspname !~ '^pg_' and n.nspname <> 'information_schema' and not exists (
  select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')`

// A ledger of migrations is no data: the tables that a restore fills have their own. Unlogged tables are left out.
const isData = `c.relkind = 'r' and c.relpersistence = 'p'
  and not (c.relname = 'migrations' and n.nspname <> 'public')`

const from = 'from pg_class c join pg_namespace n on n.oid = c.relnamespace'

export const quoted = ({ schema, name }: TableName): string =>
  `${pg.escapeIdentifier(schema)}.${pg.escapeIdentifier(name)}`
export const quotedColumns = (columns: readonly string[]): string => columns.map(pg.escapeIdentifier).join(', ')
export const plainName = ({ schema, name }: TableName): string => `${schema}.${name}`

export async function listTables(db: Db): Promise<CatalogTable[]> {
  const { rows } = await db.query<CatalogTable>(
    `select c.oid::int8 as oid, n.nspname::text as schema, c.relname::text as name, ${ownership} as "isOurs",
       array(select a.attname::text from pg_attribute a
             where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
             order by a.attnum) as columns
     ${from} where ${isOfUsers} and ${isData} order by 2, 3`,
  )
  return rows
}

export async function listSequences(db: Db): Promise<CatalogSequence[]> {
  const { rows } = await db.query<CatalogSequence>(
    `select c.oid::int8 as oid, n.nspname::text as schema, c.relname::text as name,
       case when q.seqincrement > 0 then (
         select json_build_object('schema', tn.nspname, 'name', t.relname, 'column', a.attname)
         from pg_depend d join pg_class t on t.oid = d.refobjid join pg_namespace tn on tn.oid = t.relnamespace
           join pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
         where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.refclassid = 'pg_class'::regclass
           and d.deptype in ('a', 'i')) end as feeds
     ${from} join pg_sequence q on q.seqrelid = c.oid
     where ${isOfUsers} and ${ownership} and c.relpersistence = 'p' order by 2, 3`,
  )
  return rows
}

/** Tables of all kinds, to tell older tables from those made since. */
export async function listRelationIds(db: Db): Promise<{ oid: number; schema: string }[]> {
  const { rows } = await db.query<{ oid: number; schema: string }>(
    `select c.oid::int8 as oid, n.nspname::text as schema ${from} where ${isOfUsers} and c.relkind in ('r', 'p', 'S')`,
  )
  return rows
}

/** The foreign keys of all tables but `except`. A partition's inherited key is dropped and added with its parent's. */
export async function listForeignKeys(db: Db, except: readonly number[]): Promise<ForeignKey[]> {
  const { rows } = await db.query<ForeignKey>(
    `select n.nspname::text as schema, c.relname::text as name, k.conname::text as constraint,
       pg_get_constraintdef(k.oid) as definition
     ${from} join pg_constraint k on k.conrelid = c.oid and k.contype = 'f' and k.conparentid = 0
     where ${isOfUsers} and c.oid <> all($1::oid[]) order by 1, 2, 3`,
    [except],
  )
  return rows
}

export async function listTriggers(db: Db, except: readonly number[]): Promise<Trigger[]> {
  const { rows } = await db.query<Trigger>(
    `select n.nspname::text as schema, c.relname::text as name, t.tgname::text as trigger,
       case t.tgenabled when 'A' then 'enable always' when 'R' then 'enable replica' else 'enable' end as mode
     ${from} join pg_trigger t on t.tgrelid = c.oid and not t.tgisinternal and t.tgenabled <> 'D'
     where ${isOfUsers} and c.relkind in ('r', 'p') and c.oid <> all($1::oid[]) order by 1, 2, 3`,
    [except],
  )
  return rows
}
