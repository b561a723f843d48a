// The MCP servers of a project, as they are stored. Header values are write-only: sealed with project and name bound to
// them, opened only to connect.
import { changeAudited } from '../audit/record.ts'
import { isUniqueViolation } from '../db/failures.ts'
import { listPage, type PageQuery } from '../db/list-page.ts'
import type { Db } from '../db/pool.ts'
import { conflict, notFound } from '../kernel/errors.ts'
import type { Page } from '../kernel/fields.ts'
import { newId } from '../kernel/id.ts'
import type { McpServer, McpServerInput, McpToolEntry } from '../kernel/mcp-server.ts'
import type { Actor } from '../kernel/principal.ts'
import type { Cipher } from '../secrets/cipher.ts'

type McpServerRow = Omit<McpServer, 'created_at' | 'updated_at'> & { created_at: Date; updated_at: Date }

/** With what only a connection needs. */
export type StoredMcpServer = McpServerRow & { sealed_headers: Buffer | null }

const COLUMNS = `id, project_id, name, url, command, args, header_names, set_by_instance_admin, tools, pending_tools,
  created_at, updated_at`

export async function createMcpServer(
  db: Db,
  cipher: Cipher,
  projectId: string,
  input: McpServerInput,
  { tools, actor, byInstanceAdmin }: { tools: readonly McpToolEntry[]; actor: Actor; byInstanceAdmin: boolean },
): Promise<McpServer> {
  try {
    const rows = await changeAudited<McpServerRow>(db, {
      sql: `insert into mcp_servers (id, project_id, name, url, command, args, header_names, sealed_headers,
              set_by_instance_admin, tools)
            values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) returning ${COLUMNS}`,
      values: [
        newId(),
        projectId,
        input.name,
        input.url ?? null,
        input.command ?? null,
        JSON.stringify(input.args ?? []),
        Object.keys(input.headers ?? {}),
        sealHeaders(cipher, projectId, input),
        byInstanceAdmin,
        JSON.stringify(tools),
      ],
      note: note('mcp_server.create', actor, projectId, input.name, {
        ...(input.url === undefined ? { command: input.command } : { url: input.url }),
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

/** Answers the id it had. */
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
  tools: readonly McpToolEntry[],
  actor: Actor,
): Promise<McpServer> {
  const rows = await changeAudited<McpServerRow>(db, {
    sql: `update mcp_servers set tools = $2, pending_tools = null, updated_at = muster.now() where id = $1
          returning ${COLUMNS}`,
    values: [server.id, JSON.stringify(tools)],
    note: note('mcp_server.approve', actor, server.project_id, server.name, { tools: tools.map(({ name }) => name) }),
  })
  return onlyServer(rows)
}

/** What a connection saw; null where it is what was approved. Writes only when that changes. */
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
      text: `select ${COLUMNS}, sealed_headers from mcp_servers where project_id = $1 and name = $2`,
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

export function openHeaders(cipher: Cipher, server: StoredMcpServer): Record<string, string> {
  if (server.sealed_headers === null) return {}
  const text = cipher.open(server.sealed_headers, headersContext(server.project_id, server.name)).toString('utf8')
  return JSON.parse(text) as Record<string, string> // sealed by us, from checked input
}

const headersContext = (projectId: string, name: string) => ({ owner: projectId, name: `mcp:${name}` })

function sealHeaders(cipher: Cipher, projectId: string, { name, headers }: McpServerInput): Buffer | null {
  const hasHeaders = headers !== undefined && Object.keys(headers).length > 0
  return hasHeaders ? cipher.seal(JSON.stringify(headers), headersContext(projectId, name)) : null
}

/** A name from a path may hold what PostgreSQL refuses as text; no server is called so. */
const storable = (name: string): string => (name.includes('\0') ? '' : name)

function note(action: string, actor: Actor, projectId: string, name: string, details: Record<string, unknown>) {
  return { action, actor, projectId, targetType: 'mcp_server', targetId: name, details }
}

function onlyServer(rows: McpServerRow[]): McpServer {
  const row = rows[0]
  if (!row) throw notFound('MCP server')
  return toServer(row)
}

function toServer(row: McpServerRow): McpServer {
  return { ...row, created_at: row.created_at.toISOString(), updated_at: row.updated_at.toISOString() }
}
