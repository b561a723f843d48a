// The prompts of a project: texts that came with Muster, and unchanging versions. A deletion is an empty version.
import type { Db, PreparedSql } from '../db/pool.ts'
import { cutByBytes } from '../journal/read.ts'
import { invalidRequest, notFound, promptMissing } from '../kernel/errors.ts'
import type { Page } from '../kernel/fields.ts'
import {
  isPromptName,
  type ListedPrompt,
  type Prompt,
  type PromptMessage,
  type PromptVersion,
  requiredPrompts,
} from '../kernel/prompt.ts'
import { unknownVariables } from './render-prompt.ts'
import { compareText, type ShippedPrompts } from './shipped-prompts.ts'

export interface PromptKey {
  projectId: string
  promptId: string
  variantId: string
}

interface VersionRow {
  version: number
  messages: PromptMessage[] | null
  is_seeded: boolean
  rolled_back_to: number | null
  actor_type: string
  actor_id: string | null
  created_at: Date
}

const VERSION_COLUMNS = 'v.version, v.messages, v.is_seeded, v.rolled_back_to, v.actor_type, v.actor_id, v.created_at'

const FIND: PreparedSql = {
  name: 'prompt_find',
  text: `select ${VERSION_COLUMNS} from prompt_variants p
    join prompt_versions v on v.variant = p.id and v.version = p.version
    where p.project_id = $1 and p.prompt_id = $2 and p.variant_id = $3`,
}

/** The newest version that is stored, even if it is a deletion; null if the project never changed the variant. */
export async function findStored(db: Db, key: PromptKey): Promise<PromptVersion | null> {
  // No prompt has another name, and the database takes no NUL.
  if (!isPromptName(key.promptId) || !isPromptName(key.variantId)) return null
  const { rows } = await db.query<VersionRow>(FIND, [key.projectId, key.promptId, key.variantId])
  return rows[0] ? toVersion(rows[0]) : null
}

/** The newest version, or the text that came with Muster; null if the variant never existed. */
export const findPrompt = async (db: Db, shipped: ShippedPrompts, key: PromptKey): Promise<PromptVersion | null> =>
  (await findStored(db, key)) ?? seededVersion(db, shipped, key)

/** Throws PROMPT_MISSING. */
export async function getPrompt(db: Db, shipped: ShippedPrompts, key: PromptKey): Promise<Prompt> {
  const found = await findPrompt(db, shipped, key)
  if (!found?.messages) throw promptMissing(key.promptId, key.variantId)
  const { rolled_back_to: _, ...version } = found
  return {
    ...namesOf(key),
    ...version,
    messages: found.messages,
    unknown_variables: unknownVariables(found.messages),
  }
}

export async function getVersion(
  db: Db,
  shipped: ShippedPrompts,
  key: PromptKey,
  version: number,
): Promise<PromptVersion> {
  const newest = await findPrompt(db, shipped, key)
  if (!newest) throw promptMissing(key.promptId, key.variantId)
  if (newest.version === version) return newest
  const { rows } = await db.query<VersionRow>(
    `select ${VERSION_COLUMNS} from prompt_variants p join prompt_versions v on v.variant = p.id
     where p.project_id = $1 and p.prompt_id = $2 and p.variant_id = $3 and v.version = $4`,
    [key.projectId, key.promptId, key.variantId, version],
  )
  if (!rows[0]) throw notFound('version')
  return toVersion(rows[0])
}

/** The number of the newest version; deletions count too. */
export async function latestVersion(db: Db, shipped: ShippedPrompts, key: PromptKey): Promise<number> {
  const newest = await findPrompt(db, shipped, key)
  if (!newest) throw promptMissing(key.promptId, key.variantId)
  return newest.version
}

interface ListQuery {
  limit: number
  cursor?: string | undefined
}

/** Lists the newest versions first. A page ends early if its texts are large. */
export async function listVersions(
  db: Db,
  shipped: ShippedPrompts,
  key: PromptKey,
  { limit, cursor }: ListQuery,
): Promise<Page<PromptVersion>> {
  if (cursor !== undefined && !/^\d{1,9}$/.test(cursor)) throw notOurs()
  const newest = await findPrompt(db, shipped, key)
  if (!newest) throw promptMissing(key.promptId, key.variantId)
  const { rows } = await db.query<VersionRow & { found: number }>(LIST_VERSIONS, [
    key.projectId,
    key.promptId,
    key.variantId,
    Number(cursor ?? newest.version + 1),
    limit + 1,
  ])
  if (rows.length === 0) return { items: cursor === undefined ? [newest] : [], next_cursor: null }
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  const isMore = last !== undefined && (rows[0]?.found ?? 0) > shown.length
  return { items: shown.map(toVersion), next_cursor: isMore ? String(last.version) : null }
}

const LIST_VERSIONS = `
  select version, data as messages, is_seeded, rolled_back_to, actor_type, actor_id, created_at, found
  from (${cutByBytes(`
    select -v.version as seq, v.version, v.messages as data, v.is_seeded, v.rolled_back_to, v.actor_type, v.actor_id,
      v.created_at
    from prompt_variants p join prompt_versions v on v.variant = p.id
    where p.project_id = $1 and p.prompt_id = $2 and p.variant_id = $3 and v.version < $4
    order by v.version desc limit $5`)}) page
  order by version desc`

interface ListedRow extends Omit<VersionRow, 'messages' | 'rolled_back_to'> {
  prompt_id: string
  variant_id: string
  is_deleted: boolean
}

/** Lists prompts by name. Prompts that were deleted are left out, unless they are asked for. */
export async function listPrompts(
  db: Db,
  shipped: ShippedPrompts,
  projectId: string,
  { limit, cursor, withDeleted = false }: ListQuery & { withDeleted?: boolean },
): Promise<Page<ListedPrompt>> {
  const [promptId, variantId] = cursor === undefined ? ['', ''] : readCursor(cursor)
  const { rows } = await db.query<ListedRow>(
    `select p.prompt_id, p.variant_id, p.is_deleted, v.version, v.is_seeded, v.actor_type, v.actor_id, v.created_at
     from prompt_variants p join prompt_versions v on v.variant = p.id and v.version = p.version
     where p.project_id = $1 ${withDeleted ? '' : 'and not p.is_deleted'} and (p.prompt_id, p.variant_id) > ($2, $3)
     order by p.prompt_id, p.variant_id limit $4`,
    [projectId, promptId, variantId, limit + 1],
  )
  const own = rows.map((row) => ({
    ...namesOf({ projectId, promptId: row.prompt_id, variantId: row.variant_id }),
    ...factsOf(row),
    required: isRequired(row.prompt_id),
    deleted: row.is_deleted,
  }))
  const seeded = (await unchangedPrompts(db, shipped, projectId)).filter(
    (prompt) => compareNames(prompt, { prompt_id: promptId, variant_id: variantId }) > 0,
  )
  const all = [...own, ...seeded].sort(compareNames)
  const items = all.slice(0, limit)
  const last = items.at(-1)
  return { items, next_cursor: last && all.length > limit ? cursorOf(last) : null }
}

/** The prompts that came with Muster and that the project has not touched. */
async function unchangedPrompts(db: Db, shipped: ShippedPrompts, projectId: string): Promise<ListedPrompt[]> {
  const { rows } = await db.query<{ place: number; created_at: Date }>(
    `select s.place::int, j.created_at from projects j
     cross join unnest($2::text[], $3::text[]) with ordinality as s (prompt_id, variant_id, place)
     where j.id = $1 and not exists (
       select from prompt_variants p
       where p.project_id = $1 and p.prompt_id = s.prompt_id collate "C" and p.variant_id = s.variant_id collate "C")
     order by s.place`,
    [projectId, shipped.all.map((prompt) => prompt.promptId), shipped.all.map((prompt) => prompt.variantId)],
  )
  return rows.flatMap(({ place, created_at }) => {
    const prompt = shipped.all[place - 1]
    if (!prompt) return []
    const { promptId, variantId } = prompt
    const facts = { ...seededFacts(created_at), required: isRequired(promptId), deleted: false }
    return [{ ...namesOf({ projectId, promptId, variantId }), ...facts }]
  })
}

async function seededVersion(db: Db, shipped: ShippedPrompts, key: PromptKey): Promise<PromptVersion | null> {
  const messages = shipped.find(key.promptId, key.variantId)
  if (!messages) return null
  const { rows } = await db.query<{ created_at: Date }>('select created_at from projects where id = $1', [
    key.projectId,
  ])
  return rows[0] ? { ...seededFacts(rows[0].created_at), messages, rolled_back_to: null } : null
}

/** A project has the prompts that came with Muster from its creation on. */
const seededFacts = (at: Date) => ({
  version: 1,
  seeded: true,
  actor: { type: 'system', id: null },
  created_at: at.toISOString(),
})

const namesOf = ({ projectId, promptId, variantId }: PromptKey) => ({
  project_id: projectId,
  prompt_id: promptId,
  variant_id: variantId,
})

const factsOf = (row: Omit<VersionRow, 'messages' | 'rolled_back_to'>) => ({
  version: row.version,
  seeded: row.is_seeded,
  actor: { type: row.actor_type, id: row.actor_id },
  created_at: row.created_at.toISOString(),
})

const toVersion = (row: VersionRow): PromptVersion => ({
  ...factsOf(row),
  messages: row.messages,
  rolled_back_to: row.rolled_back_to,
})

const isRequired = (promptId: string): boolean => requiredPrompts.some((required) => required === promptId)

type Names = Pick<ListedPrompt, 'prompt_id' | 'variant_id'>

const compareNames = (a: Names, b: Names): number =>
  compareText(a.prompt_id, b.prompt_id) || compareText(a.variant_id, b.variant_id)

const cursorOf = (names: Names): string => Buffer.from(`${names.prompt_id} ${names.variant_id}`).toString('base64url')

function readCursor(cursor: string): [promptId: string, variantId: string] {
  const [promptId = '', variantId = ''] = Buffer.from(cursor, 'base64url').toString('latin1').split(' ')
  if (!isPromptName(promptId) || !isPromptName(variantId)) throw notOurs()
  return [promptId, variantId]
}

const notOurs = () => invalidRequest('cursor is not one that this list gave.')
