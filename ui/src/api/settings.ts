// Reads of the settings: of the instance, of a project, and of the signed-in person.
import { queryOptions } from '@tanstack/react-query'
import type { AuditEntry, AuditVerdict, Key, ListedSession, Member } from '../../../src/kernel/access.ts'
import type { McpServer } from '../../../src/kernel/mcp-server.ts'
import type { Project, Settings } from '../../../src/kernel/project.ts'
import type { Provider } from '../../../src/kernel/provider.ts'
import { get, type Page } from './client.ts'
import { pagedQuery } from './pages.ts'
import { projectPath } from './queries.ts'

const ROWS = 50

export const projectQuery = (projectId: string) =>
  queryOptions({
    queryKey: ['projects', projectId],
    queryFn: () => get<Project>(projectPath(projectId)),
  })

export const settingsQuery = (projectId: string) =>
  queryOptions({
    queryKey: ['settings', projectId],
    queryFn: () => get<Settings>(projectPath(projectId, '/settings')),
  })

export const providersQuery = queryOptions({
  queryKey: ['provider', 'list'],
  queryFn: () => get<Page<Provider>>('/api/providers', { query: { limit: 200 } }),
})

export const mcpServersQuery = (projectId: string) =>
  queryOptions({
    queryKey: ['mcp_server', projectId, 'list'],
    queryFn: () => get<Page<McpServer>>(projectPath(projectId, '/mcp-servers'), { query: { limit: 200 } }),
  })

export const keysQuery = (projectId: string) =>
  pagedQuery<Key>(['key', projectId, 'list'], projectPath(projectId, '/keys'), { limit: ROWS })

export const membersQuery = (projectId: string) =>
  pagedQuery<Member>(['member', projectId, 'list'], projectPath(projectId, '/members'), { limit: ROWS })

export const auditQuery = (projectId: string, filter: { action?: string | undefined; actor?: string | undefined }) =>
  pagedQuery<AuditEntry>(['audit', projectId, 'list', filter], projectPath(projectId, '/audit'), {
    limit: ROWS,
    ...filter,
  })

/** Recomputes the chain over the whole log, which may take a while. */
export const verifyChain = (): Promise<AuditVerdict> => get('/api/audit/verify', { patienceMs: 120_000 })

export const sessionsQuery = queryOptions({
  queryKey: ['session', 'list'],
  queryFn: () => get<Page<ListedSession>>('/api/auth/sessions'),
})
