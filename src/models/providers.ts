// Model providers of the instance. Keys, headers and access tokens are write-only: sealed with the provider's name
// bound to them, opened only to make a call.

import { changeAudited } from '../audit/record.ts'
import { isUniqueViolation } from '../db/failures.ts'
import { type RowOf, tellInstants } from '../db/instants.ts'
import type { PageQuery } from '../db/list-page.ts'
import type { Db, Pool } from '../db/pool.ts'
import { inTransaction } from '../db/transaction.ts'
import { conflict, invalidRequest, notFound } from '../kernel/errors.ts'
import type { Page } from '../kernel/fields.ts'
import { didYouMean } from '../kernel/nearest.ts'
import type { Actor } from '../kernel/principal.ts'
import { type Provider, type ProviderInput, type ProviderPatch, providerName } from '../kernel/provider.ts'
import type { Cipher } from '../secrets/cipher.ts'

type ProviderRow = RowOf<Provider>

const COLUMNS = `name, kind, base_url, sealed_api_key is not null as has_api_key, prices, options,
  header_names, sealed_access_token is not null as has_access_token, source, created_at, updated_at`

export async function createProvider(db: Db, cipher: Cipher, input: ProviderInput, actor: Actor): Promise<Provider> {
  try {
    const rows = await changeAudited<ProviderRow>(db, {
      sql: `insert into providers (name, kind, base_url, sealed_api_key, prices, options, header_names, sealed_headers,
              sealed_access_token)
            values ($1, $2, $3, $4, $5, $6, $7, $8, $9) returning ${COLUMNS}`,
      values: [
        input.name,
        input.kind,
        input.base_url ?? null,
        sealKey(cipher, input.name, input.api_key),
        JSON.stringify(input.prices ?? {}),
        ...sealOptions(cipher, input.name, input.options ?? {}),
      ],
      note: note('provider.create', actor, input.name, { kind: input.kind }),
    })
    return onlyProvider(rows)
  } catch (error) {
    if (isUniqueViolation(error)) throw conflict(`There is a provider called ${input.name} already. Change it instead.`)
    throw error
  }
}

/** Lists in the order of names; the cursor is the last name seen. */
export async function listProviders(db: Db, { limit, cursor }: PageQuery): Promise<Page<Provider>> {
  if (cursor !== undefined && !providerName.safeParse(cursor).success) {
    throw invalidRequest('cursor is not one that this list gave.')
  }
  const { rows } = await db.query<ProviderRow>(
    `select ${COLUMNS} from providers where $1::text is null or name > $1 order by name limit $2`,
    [cursor ?? null, limit + 1],
  )
  const items = rows.slice(0, limit).map(toProvider)
  return { items, next_cursor: rows.length > limit ? (items.at(-1)?.name ?? null) : null }
}

export async function getProvider(db: Db, name: string): Promise<Provider> {
  if (!providerName.safeParse(name).success) throw notFound('provider')
  const { rows } = await db.query<ProviderRow>(`select ${COLUMNS} from providers where name = $1`, [name])
  return onlyProvider(rows)
}

export async function findProvider(db: Db, name: string): Promise<Provider | null> {
  const { rows } = await db.query<ProviderRow>(`select ${COLUMNS} from providers where name = $1`, [name])
  return rows[0] ? toProvider(rows[0]) : null
}

async function providerExists(db: Db, name: string): Promise<boolean> {
  const { rowCount } = await db.query('select from providers where name = $1', [name])
  return rowCount === 1
}

/** Names that everybody may know. Other providers are named by the instance admin, for their own tenants. */
const PUBLIC_NAMES = ['offline', 'openai', 'anthropic', 'google', 'google-vertex', 'ollama']

/** The sentence that there is no such provider, with the nearest or the usual names; null if there is one. */
export async function unknownProvider(db: Db, name: string): Promise<string | null> {
  if (await providerExists(db, name)) return null
  const { rows } = await db.query<{ name: string }>('select name from providers where name = any($1) order by name', [
    PUBLIC_NAMES,
  ])
  const names = rows.map((row) => row.name)
  return `there is no provider called ${name}.${didYouMean(name, names) || ` You may use ${names.join(' or ')}.`}`
}

/** An absent field stays as it is; `null` removes a base URL or key. */
export async function updateProvider(
  db: Db,
  cipher: Cipher,
  name: string,
  patch: ProviderPatch,
  actor: Actor,
): Promise<Provider> {
  const changed = Object.keys(patch)
  if (changed.length === 0 || !providerName.safeParse(name).success) return getProvider(db, name)
  const { options = {} } = patch
  const [clear, headerNames, sealedHeaders, sealedToken] = sealOptions(cipher, name, options)
  const rows = await changeAudited<ProviderRow>(db, {
    sql: `update providers set
            base_url = case when $2 then $3 else base_url end,
            sealed_api_key = case when $4 then $5 else sealed_api_key end,
            prices = coalesce($6, prices), options = coalesce($7, options),
            header_names = case when $8 then $9 else header_names end,
            sealed_headers = case when $8 then $10 else sealed_headers end,
            sealed_access_token = case when $11 then $12 else sealed_access_token end, updated_at = muster.now()
          where name = $1 returning ${COLUMNS}`,
    values: [
      name,
      patch.base_url !== undefined,
      patch.base_url ?? null,
      patch.api_key !== undefined,
      sealKey(cipher, name, patch.api_key),
      patch.prices === undefined ? null : JSON.stringify(patch.prices),
      patch.options === undefined ? null : clear,
      options.headers !== undefined,
      headerNames,
      sealedHeaders,
      options.access_token !== undefined,
      sealedToken,
    ],
    note: note('provider.update', actor, name, { changed }),
  })
  return onlyProvider(rows)
}

export async function deleteProvider(db: Db, name: string, actor: Actor): Promise<void> {
  const provider = await getProvider(db, name)
  if (provider.source === 'built-in') throw conflict(`${name} is built in and cannot be deleted.`)
  await changeAudited(db, {
    sql: 'delete from providers where name = $1 returning name',
    values: [name],
    note: note('provider.delete', actor, name, {}),
  })
}

/** The key in clear, opened only when a call is made. */
export async function openProviderKey(db: Db, cipher: Cipher, name: string): Promise<string | null> {
  const { rows } = await db.query<{ sealed_api_key: Buffer | null }>(
    'select sealed_api_key from providers where name = $1',
    [name],
  )
  const sealed = rows[0]?.sealed_api_key
  return sealed ? cipher.open(sealed, keyContext(name)).toString('utf8') : null
}

export async function openSecretOptions(db: Db, cipher: Cipher, name: string): Promise<Record<string, unknown>> {
  const { rows } = await db.query<SecretRow>(
    'select options, sealed_headers, sealed_access_token from providers where name = $1',
    [name],
  )
  const row = rows[0]
  if (!row) return {}
  const { headers, access_token } = row.options
  const open = (sealed: Buffer, what: SecretOption): unknown =>
    JSON.parse(cipher.open(sealed, optionContext(name, what)).toString('utf8'))
  return {
    ...(headers !== undefined && { headers }),
    ...(access_token !== undefined && { access_token }),
    ...(row.sealed_headers && { headers: open(row.sealed_headers, 'headers') }),
    ...(row.sealed_access_token && { access_token: open(row.sealed_access_token, 'access_token') }),
  }
}

interface SecretRow {
  options: Record<string, unknown>
  sealed_headers: Buffer | null
  sealed_access_token: Buffer | null
}

/** Seals secrets that earlier releases kept in clear among the options. Two servers may call this at once. */
export async function sealOldOptions(pool: Pool, cipher: Cipher): Promise<void> {
  await inTransaction(pool, async (tx) => {
    const { rows } = await tx.query<{ name: string; options: Record<string, unknown> }>(
      `select name, options from providers where options ?| array['headers', 'access_token'] order by name for update`,
    )
    for (const { name, options } of rows) {
      await tx.query(
        `update providers set options = $2, header_names = $3, sealed_headers = coalesce($4, sealed_headers),
           sealed_access_token = coalesce($5, sealed_access_token), updated_at = muster.now() where name = $1`,
        [name, ...sealOptions(cipher, name, options)],
      )
    }
  })
}

/** Every start writes the providers of the environment, and the offline model. */
export async function upsertProvider(
  db: Db,
  cipher: Cipher,
  provider: ProviderInput & { source: 'environment' | 'built-in' },
): Promise<void> {
  await db.query(
    `insert into providers (name, kind, base_url, sealed_api_key, source, options, header_names, sealed_headers,
       sealed_access_token) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
     on conflict (name) do update set sealed_api_key = excluded.sealed_api_key, base_url = excluded.base_url,
       options = excluded.options, header_names = excluded.header_names, sealed_headers = excluded.sealed_headers,
       sealed_access_token = excluded.sealed_access_token, updated_at = muster.now()
     where providers.source = 'environment'`,
    [
      provider.name,
      provider.kind,
      provider.base_url ?? null,
      sealKey(cipher, provider.name, provider.api_key),
      provider.source,
      ...sealOptions(cipher, provider.name, provider.options ?? {}),
    ],
  )
}

const keyContext = (name: string) => ({ owner: 'instance', name: `provider:${name}` })

const sealKey = (cipher: Cipher, name: string, key: string | null | undefined): Buffer | null =>
  key ? cipher.seal(key, keyContext(name)) : null

type SecretOption = 'headers' | 'access_token'

const optionContext = (name: string, what: SecretOption) => ({ owner: 'instance', name: `provider-${what}:${name}` })

/** Returns the options in clear, the names of the headers, and the sealed headers and access token. */
function sealOptions(
  cipher: Cipher,
  name: string,
  options: Record<string, unknown>,
): [string, string[], Buffer | null, Buffer | null] {
  const { headers = null, access_token = null, ...clear } = options
  const seal = (value: unknown, what: SecretOption): Buffer | null =>
    value === null ? null : cipher.seal(JSON.stringify(value), optionContext(name, what))
  const names = namesOf(headers)
  const sealedHeaders = names.length === 0 && typeof headers === 'object' ? null : seal(headers, 'headers')
  return [JSON.stringify(clear), names, sealedHeaders, seal(access_token, 'access_token')]
}

const namesOf = (headers: unknown): string[] =>
  typeof headers === 'object' && headers !== null ? Object.keys(headers) : []

function note(action: string, actor: Actor, name: string, details: Record<string, unknown>) {
  return { action, actor, projectId: null, targetType: 'provider', targetId: name, details }
}

function onlyProvider(rows: ProviderRow[]): Provider {
  const row = rows[0]
  if (!row) throw notFound('provider')
  return toProvider(row)
}

function toProvider(row: ProviderRow): Provider {
  // A server of an earlier release beside this one may still write headers and access token in clear.
  const { headers, access_token, ...options } = row.options
  return {
    ...tellInstants(row),
    options,
    header_names: row.header_names.length > 0 ? row.header_names : namesOf(headers),
    has_access_token: row.has_access_token || access_token !== undefined,
  }
}
