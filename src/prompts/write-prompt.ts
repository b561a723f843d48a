// The one way in which a prompt changes: the next version is appended. All writers of a variant meet at its row in
// prompt_variants, so that each has a number of its own and none is lost.
import { recordAudit } from '../audit/record.ts'
import type { Db } from '../db/pool.ts'
import { conflict, invalidRequest, promptMissing } from '../kernel/errors.ts'
import { newId } from '../kernel/id.ts'
import type { Actor } from '../kernel/principal.ts'
import {
  isPromptName,
  type Prompt,
  type PromptInput,
  type PromptMessage,
  type RollbackInput,
} from '../kernel/prompt.ts'
import { findPrompt, getPrompt, getVersion, type PromptKey } from './prompts.ts'
import type { ShippedPrompts } from './shipped-prompts.ts'

/** A notice names the variant that changed: project, prompt and variant, with blanks between. */
export const PROMPT_CHANNEL = 'muster_prompt'

export const noticeOf = ({ projectId, promptId, variantId }: PromptKey): string =>
  `${projectId} ${promptId} ${variantId}`

interface Write {
  shipped: ShippedPrompts
  actor: Actor
}

/** Without `expected_version` two people who save at once make two versions, and the later one holds. */
export async function savePrompt(
  tx: Db,
  key: PromptKey,
  { messages, expected_version }: PromptInput,
  write: Write,
): Promise<Prompt> {
  requireNames(key)
  const expected = expected_version ?? null
  await appendVersion(tx, key, { action: 'prompt.save', messages, expected, rolledBackTo: null }, write)
  return getPrompt(tx, write.shipped, key)
}

/** Deletes the prompt. The versions stay, and a rollback brings any of them back. */
export async function deletePrompt(tx: Db, key: PromptKey, write: Write): Promise<void> {
  if (!hasNames(key)) throw promptMissing(key.promptId, key.variantId)
  await appendVersion(tx, key, { action: 'prompt.delete', messages: null, expected: null, rolledBackTo: null }, write)
}

/** Appends the text of an earlier version as the next version. */
export async function rollBackPrompt(
  tx: Db,
  key: PromptKey,
  { version, expected_version }: RollbackInput,
  write: Write,
): Promise<Prompt> {
  const { messages } = await getVersion(tx, write.shipped, key, version)
  if (!messages) throw conflict(`Version ${version} deleted the prompt: it has no text to go back to.`)
  const expected = expected_version ?? null
  await appendVersion(tx, key, { action: 'prompt.rollback', messages, expected, rolledBackTo: version }, write)
  return getPrompt(tx, write.shipped, key)
}

interface NextVersion {
  action: string
  /** Null deletes the prompt. */
  messages: PromptMessage[] | null
  expected: number | null
  rolledBackTo: number | null
}

async function appendVersion(tx: Db, key: PromptKey, next: NextVersion, { shipped, actor }: Write): Promise<void> {
  const seeded = shipped.find(key.promptId, key.variantId)
  const { rows } = await tx.query<{ version: number }>(APPEND, [
    newId(),
    key.projectId,
    key.promptId,
    key.variantId,
    next.messages && JSON.stringify(next.messages),
    seeded && JSON.stringify(seeded),
    next.expected,
    next.rolledBackTo,
    actor.type,
    actor.id,
    PROMPT_CHANNEL,
    noticeOf(key),
  ])
  const version = rows[0]?.version
  if (version === undefined) return refuse(tx, key, next, shipped)
  const { promptId: prompt_id, variantId: variant_id } = key
  await recordAudit(tx, {
    action: next.action,
    actor,
    projectId: key.projectId,
    targetType: 'prompt',
    targetId: `${prompt_id}/${variant_id}`,
    details: { prompt_id, variant_id, version, ...(next.rolledBackTo ? { rolled_back_to: next.rolledBackTo } : {}) },
  })
}

/**
 * The first version that a project writes is version 2: the replaced text of Muster is kept as version 1. No row comes
 * back if the expected version is another one, or if there is nothing to delete.
 */
const APPEND = `
  with head as (
    insert into prompt_variants as p (id, project_id, prompt_id, variant_id, version, is_deleted)
    select $1::uuid, $2::uuid, $3, $4, case when $6::jsonb is null then 1 else 2 end, $5::jsonb is null
    where exists (select from prompt_variants where project_id = $2 and prompt_id = $3 and variant_id = $4)
      or (($5::jsonb is not null or $6::jsonb is not null)
        and coalesce($7::int = case when $6::jsonb is null then 0 else 1 end, true))
    on conflict (project_id, prompt_id, variant_id) do update set version = p.version + 1, is_deleted = $5::jsonb is null
      where ($5::jsonb is not null or not p.is_deleted) and coalesce(p.version = $7::int, true)
    returning p.id, p.version
  ), seeded as (
    insert into prompt_versions (variant, version, messages, is_seeded, actor_type, created_at)
    select id, 1, $6::jsonb, true, 'system', (select created_at from projects where id = $2)
    from head where id = $1 and $6::jsonb is not null
  ), written as (
    insert into prompt_versions (variant, version, messages, rolled_back_to, actor_type, actor_id)
    select id, version, $5::jsonb, $8::int, $9, $10 from head
  )
  select version, pg_notify($11, $12) from head`

async function refuse(tx: Db, key: PromptKey, next: NextVersion, shipped: ShippedPrompts): Promise<never> {
  const newest = await findPrompt(tx, shipped, key)
  if (next.messages === null && !newest?.messages) throw promptMissing(key.promptId, key.variantId)
  const version = newest?.version ?? 0
  throw conflict(`The prompt is at version ${version} by now, not at ${next.expected}. Read it again.`, { version })
}

const hasNames = ({ promptId, variantId }: PromptKey): boolean => isPromptName(promptId) && isPromptName(variantId)

function requireNames(key: PromptKey): void {
  if (hasNames(key)) return
  throw invalidRequest('A prompt and a variant have names of 1 to 64 letters, digits and "_", "-" or ".".')
}
