// The MCP servers of a project. Values of headers and of the environment are write-only: sealed with project and name,
// opened only to connect.

import { changeAudited } from '../audit/record.ts'
import { isUniqueViolation } from '../db/failures.ts'
import { type RowOf, tellInstants } from '../db/instants.ts'
import { listPage, type PageQuery } from '../db/list-page.ts'
import type { Db } from '../db/pool.ts'
import { conflict, notFound } from '../kernel/errors.ts'
import type { Page } from '../kernel/fields.ts'
import { newId } from '../kernel/id.ts'
import { type McpServer, type McpServerInput, type McpToolEntry, withoutQuery } from '../kernel/mcp-server.ts'
import type { Actor } from '../kernel/principal.ts'
import type { Cipher, SecretContext } from '../secrets/cipher.ts'
import type { ApprovedTools } from './registry.ts'

type McpServerRow = RowOf<McpServer>

export type StoredMcpServer = McpServerRow & { sealed_headers: Buffer | null; sealed_env: Buffer | null }

const COLUMNS = `id, project_id, name, url, command, args, header_names, env_names, set_by_instance_admin, tools,
  pending_tools, created_at, updated_at`

export async function createMcpServer(
  db: Db,
  cipher: Cipher,
  projectId: string,
  input: McpServerInput,
  { tools, actor, byInstanceAdmin }: { tools: readonly McpToolEntry[]; actor: Actor; byInstanceAdmin: boolean },
): Promise<McpServer> {
  try {
    const rows = await changeAudited<McpServerRow>(db, {
      sql: `insert into mcp_servers (id, project_id, name, url, command, args, header_names, sealed_headers, env_names,
              sealed_env, set_by_instance_admin, tools)
            values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) returning ${COLUMNS}`,
      values: [
        newId(),
        projectId,
        input.name,
        input.url ?? null,
        input.command ?? null,
        JSON.stringify(input.args ?? []),
        Object.keys(input.headers ?? {}),
        seal(cipher, input.headers, headersContext(projectId, input.name)),
        Object.keys(input.env ?? {}),
        seal(cipher, input.env, envContext(projectId, input.name)),
        byInstanceAdmin,
        JSON.stringify(tools),
      ],
      note: note('mcp_server.create', actor, projectId, input.name, {
        // Arguments and query strings often hold a secret.
        ...(input.url === undefined ? { command: input.command } : { url: withoutQuery(input.url) }),
        tools: tools.map(({ name }) => name),
      }),
    })
    return onlyServer(rows)
  } catch (error) {
    if (isUniqueViolation(error, 'mcp_servers_name')) {
      throw conflict(`There is an MCP server called ${input.name} already. Delete it first.`)
    }
    throw error
  }
}

const SERVERS_AT_ONCE = 200
const LARGE_LIST = 4 * 1_048_576

/**
 * The approved tools of the servers after the named one, by name: as many servers as fit into 4 MiB, at least one.
 * `next` is the last server if there are more.
 */
export async function approvedMcpTools(db: Db, projectId: string, after: string | null): Promise<ApprovedTools> {
  const { rows } = await db.query<{ server: string; tools: McpToolEntry[] | null }>(
    `select server, case when before < ${LARGE_LIST} then tools end as tools from (
       select server, tools, coalesce(sum(octet_length(tools::text)) over (order by place rows between unbounded preceding
         and 1 preceding), 0) as before from (
           select name as server, tools, row_number() over (order by name) as place from mcp_servers
           where project_id = $1 and ($2::text is null or name > $2) order by name limit ${SERVERS_AT_ONCE + 1}
       ) as found) as sized
     order by server`,
    [projectId, after],
  )
  const servers = rows
    .slice(0, SERVERS_AT_ONCE)
    .flatMap(({ server, tools }) => (tools === null ? [] : [{ server, tools }]))
  return { servers, next: rows.length > servers.length ? (servers.at(-1)?.server ?? null) : null }
}

export function listMcpServers(db: Db, projectId: string, query: PageQuery): Promise<Page<McpServer>> {
  return listPage<McpServerRow, McpServer>(db, {
    sql: `select ${COLUMNS} from mcp_servers where project_id = $1`,
    values: [projectId],
    query,
    toItem: toServer,
  })
}

export async function getMcpServer(db: Db, projectId: string, name: string): Promise<McpServer> {
  const { rows } = await db.query<McpServerRow>(
    `select ${COLUMNS} from mcp_servers where project_id = $1 and name = $2`,
    [projectId, storable(name)],
  )
  return onlyServer(rows)
}

export async function deleteMcpServer(db: Db, projectId: string, name: string, actor: Actor): Promise<string> {
  const rows = await changeAudited<{ id: string }>(db, {
    sql: 'delete from mcp_servers where project_id = $1 and name = $2 returning id',
    values: [projectId, storable(name)],
    note: note('mcp_server.delete', actor, projectId, storable(name) ?? '', {}),
  })
  const id = rows[0]?.id
  if (id === undefined) throw notFound('MCP server')
  return id
}

export async function approveMcpTools(
  db: Db,
  server: Pick<StoredMcpServer, 'id' | 'project_id' | 'name'>,
  { tools, approvalId, actor }: { tools: readonly McpToolEntry[]; approvalId: string; actor: Actor },
): Promise<McpServer> {
  const rows = await changeAudited<McpServerRow>(db, {
    sql: `update mcp_servers set tools = $2, pending_tools = null, updated_at = muster.now()
          where id = $1 and approval_id = $3 returning ${COLUMNS}`,
    values: [server.id, JSON.stringify(tools), approvalId],
    note: note('mcp_server.approve', actor, server.project_id, server.name, { tools: tools.map(({ name }) => name) }),
  })
  return onlyServer(rows)
}

/** The claim of a process that died while approving lapses after this time; connecting takes less. */
const APPROVAL_S = 60

/**
 * An approval takes its time: of two at once the one that read the tools first could write last. The claim is a column,
 * because approvals may come to any process.
 */
export async function onceAtATime<Result>(
  db: Db,
  server: Pick<StoredMcpServer, 'id'>,
  work: (approvalId: string) => Promise<Result>,
): Promise<Result> {
  const approvalId = newId()
  const { rowCount } = await db.query(
    `update mcp_servers set approval_id = $2, approval_until = muster.now() + make_interval(secs => $3)
     where id = $1 and (approval_until is null or approval_until <= muster.now())`,
    [server.id, approvalId, APPROVAL_S],
  )
  if (rowCount !== 1) throw conflict('This MCP server is being approved at this moment. Look at it again after that.')
  try {
    return await work(approvalId)
  } finally {
    const sql = 'update mcp_servers set approval_id = null, approval_until = null where id = $1 and approval_id = $2'
    await db.query(sql, [server.id, approvalId]).catch(() => {}) // the claim lapses by itself
  }
}

/** `tools` is the list that a connection saw, or null if it is the approved one. Writes only changes. */
export async function notePendingTools(db: Db, id: string, tools: readonly McpToolEntry[] | null): Promise<void> {
  await db.query(
    'update mcp_servers set pending_tools = $2 where id = $1 and pending_tools is distinct from $2::jsonb',
    [id, tools === null ? null : JSON.stringify(tools)],
  )
}

export async function findMcpServer(db: Db, projectId: string, name: string): Promise<StoredMcpServer | null> {
  const { rows } = await db.query<StoredMcpServer>(
    {
      name: 'find_mcp_server',
      text: `select ${COLUMNS}, sealed_headers, sealed_env from mcp_servers where project_id = $1 and name = $2`,
    },
    [projectId, storable(name)],
  )
  return rows[0] ?? null
}

export async function approvedMcpToolNames(
  db: Db,
  projectId: string,
  servers: readonly string[],
): Promise<Map<string, readonly string[]>> {
  const { rows } = await db.query<{ name: string; tools: McpToolEntry[] }>(
    'select name, tools from mcp_servers where project_id = $1 and name = any($2)',
    [projectId, servers],
  )
  return new Map(rows.map(({ name, tools }) => [name, tools.map((tool) => tool.name)]))
}

export const openHeaders = (cipher: Cipher, server: StoredMcpServer): Record<string, string> =>
  open(cipher, server.sealed_headers, headersContext(server.project_id, server.name))

export const openEnvironment = (cipher: Cipher, server: StoredMcpServer): Record<string, string> =>
  open(cipher, server.sealed_env, envContext(server.project_id, server.name))

const headersContext = (projectId: string, name: string): SecretContext => ({ owner: projectId, name: `mcp:${name}` })
const envContext = (projectId: string, name: string): SecretContext => ({ owner: projectId, name: `mcp-env:${name}` })

function seal(cipher: Cipher, values: Record<string, string> | undefined, context: SecretContext): Buffer | null {
  const isEmpty = values === undefined || Object.keys(values).length === 0
  return isEmpty ? null : cipher.seal(JSON.stringify(values), context)
}

function open(cipher: Cipher, sealed: Buffer | null, context: SecretContext): Record<string, string> {
  if (sealed === null) return {}
  return JSON.parse(cipher.open(sealed, context).toString('utf8')) as Record<string, string> // sealed by us, from checked input
}

/** A name from a path may hold a character that PostgreSQL refuses; no server has such a name. */
const storable = (name: string): string => (name.includes('\0') ? '' : name)

function note(action: string, actor: Actor, projectId: string, name: string, details: Record<string, unknown>) {
  return { action, actor, projectId, targetType: 'mcp_server', targetId: name, details }
}

function onlyServer(rows: McpServerRow[]): McpServer {
  const row = rows[0]
  if (!row) throw notFound('MCP server')
  return toServer(row)
}

const toServer = (row: McpServerRow): McpServer => tellInstants(row)
