// Agents and flows follow the code of an app module by one mechanism. A field is written when the code changes it: an
// agent that people disabled, or gave more tokens, stays so until the code changes that very field.
import type { Db } from '../db/pool.ts'
import type { CodeTable } from '../db/source-column.ts'
import { canonicalJson } from '../kernel/canonical-json.ts'

interface Entry {
  id: string
  name: string
  enabled: boolean
}

/** Agents, or flows. If they are agents, the caller has locked the hierarchies of `projectsWithAgents`. */
export interface CodeNoun<Input extends { name: string }, Definition extends object, Stored extends Entry> {
  noun: 'agent' | 'flow'
  table: CodeTable
  /** The entry with its defaults filled in. */
  define(input: Input): Definition
  create(tx: Db, projectId: string, input: Input): Promise<Stored>
  lock(tx: Db, projectId: string, id: string): Promise<Stored>
  change(tx: Db, entry: Stored, patch: Partial<Definition> | { enabled: false }): Promise<Stored>
}

/** Fields: those that changed in the code. `taken`: nothing was written, because people made an entry of this name. */
export type CodeChange = 'new' | 'back' | 'same' | 'taken' | string[]

export async function putEntry<Input extends { name: string }, Definition extends object, Stored extends Entry>(
  tx: Db,
  { table, define, create, lock, change }: CodeNoun<Input, Definition, Stored>,
  projectId: string,
  file: string,
  input: Input,
): Promise<CodeChange> {
  const row = await lockCodeRow(tx, table, projectId, input.name)
  const definition = define(input)
  if (!row) {
    const { id } = await create(tx, projectId, input)
    await noteCode(tx, table, id, file, definition)
    return 'new'
  }
  if (row.app_file === null) return 'taken'
  const patch = changedInCode(row.app_definition, definition)
  const fields = Object.keys(patch)
  if (fields.length === 0 && row.app_file === file) return 'same'
  await noteCode(tx, table, row.id, file, definition)
  if (fields.length === 0) return 'same'
  await change(tx, await lock(tx, projectId, row.id), patch)
  return row.app_definition === null ? 'back' : fields
}

/** Disables the entries that the code no longer has, and returns them. */
export async function retireEntries<Input extends { name: string }, Definition extends object, Stored extends Entry>(
  tx: Db,
  { table, lock, change }: CodeNoun<Input, Definition, Stored>,
  projectId: string | null,
  file: string,
  inputs: readonly Input[],
): Promise<Stored[]> {
  const retired: Stored[] = []
  for (const row of await noteLeft(tx, table, { projectId, file, names: inputs.map(({ name }) => name) })) {
    const entry = await lock(tx, row.project_id, row.id)
    retired.push(entry.enabled ? await change(tx, entry, { enabled: false }) : entry)
  }
  return retired
}

/** The projects whose agents the code of the file may change: its own, and others in which the file made agents. */
export async function projectsWithAgents(tx: Db, file: string, projectId: string | null): Promise<string[]> {
  const { rows } = await tx.query<{ project_id: string }>(
    `select project_id from agents t where app_definition is not null and app_file = $1 and ${ALIVE.agents}
     union select $2::uuid where $2 is not null order by 1`,
    [file, projectId],
  )
  return rows.map((row) => row.project_id)
}

/** The fields that differ from the last version of the code; all fields if there was none. */
function changedInCode<Definition extends object>(
  before: Readonly<Record<string, unknown>> | null,
  now: Definition,
): Partial<Definition> {
  const changed = Object.entries(now).filter(
    ([field, value]) => before === null || canonicalJson(before[field]) !== canonicalJson(value),
  )
  return Object.fromEntries(changed) as Partial<Definition> // some of its own fields
}

/** The last definition in the code (db/source-column.ts). The verbs of agents and flows write all other columns. */
interface CodeRow {
  id: string
  app_file: string | null
  app_definition: Readonly<Record<string, unknown>> | null
}

const ALIVE: Readonly<Record<CodeTable, string>> = { agents: 't.deleted_at is null', flows: 'true' }

async function lockCodeRow(tx: Db, table: CodeTable, projectId: string, name: string): Promise<CodeRow | null> {
  const { rows } = await tx.query<CodeRow>(
    `select id, app_file, app_definition from ${table} t
     where project_id = $1 and name = $2 and ${ALIVE[table]} for no key update`,
    [projectId, name],
  )
  return rows[0] ?? null
}

/** The row follows the code of this file from now on. */
async function noteCode(tx: Db, table: CodeTable, id: string, file: string, definition: object): Promise<void> {
  const values = [id, file, JSON.stringify(definition)]
  await tx.query(`update ${table} set app_file = $2, app_definition = $3 where id = $1`, values)
}

interface Kept {
  /** The project of the module; null if it has none. */
  projectId: string | null
  file: string
  /** The names that its code has. */
  names: readonly string[]
}

/** Notes and returns rows that the code no longer has: of its project, and of other projects that the file made. */
async function noteLeft(
  tx: Db,
  table: CodeTable,
  { projectId, file, names }: Kept,
): Promise<{ id: string; project_id: string }[]> {
  const { rows } = await tx.query<{ id: string; project_id: string }>(
    `with gone as (
       select t.id from ${table} t join projects p on p.id = t.project_id
       where t.app_definition is not null and ${ALIVE[table]} and p.deleted_at is null
         and case when t.project_id = $1 then not (t.name = any($2::text[])) else t.app_file = $3 end
       order by t.id for no key update of t
     )
     update ${table} t set app_definition = null from gone where t.id = gone.id returning t.id, t.project_id`,
    [projectId, names, file],
  )
  return rows.toSorted((a, b) => (a.id < b.id ? -1 : 1))
}
