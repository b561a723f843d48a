// The queries of the pages. A key begins with its kind and project, so that the live stream knows what to read again.
import { QueryClient, queryOptions } from '@tanstack/react-query'
import type { Agent } from '../../../src/kernel/agent.ts'
import type { Project } from '../../../src/kernel/project.ts'
import type { Run } from '../../../src/kernel/run.ts'
import { ApiError, get, type Page } from './client.ts'
import type { Me, Step } from './shapes.ts'

const MOST_TRIES = 2

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      refetchOnWindowFocus: true,
      retry: (failures, error) => failures < MOST_TRIES && !(error instanceof ApiError && isFinal(error.status)),
    },
  },
})

const isFinal = (status: number): boolean => status >= 400 && status < 500

export const projectPath = (projectId: string, rest = ''): string => `/api/projects/${projectId}${rest}`

export const meQuery = queryOptions({ queryKey: ['me'], queryFn: () => get<Me>('/api/me'), staleTime: 60_000 })

export const projectsQuery = queryOptions({
  queryKey: ['projects'],
  queryFn: () => get<Page<Project>>('/api/projects', { query: { limit: 200 } }),
})

export const agentsQuery = (projectId: string) =>
  queryOptions({
    queryKey: ['agent', projectId, 'list'],
    queryFn: () => get<Page<Agent>>(projectPath(projectId, '/agents'), { query: { limit: 200 } }),
  })

export interface RunFilter {
  status?: string | undefined
  agent_id?: string | undefined
}

export const runsQuery = (projectId: string, filter: RunFilter = {}) =>
  queryOptions({
    queryKey: ['run', projectId, 'list', filter],
    queryFn: () => get<Page<Run>>(projectPath(projectId, '/runs'), { query: { limit: 100, ...filter } }),
  })

export const runQuery = (projectId: string, runId: string) =>
  queryOptions({
    queryKey: ['run', projectId, runId],
    queryFn: () => get<Run>(projectPath(projectId, `/runs/${runId}`)),
  })

export const stepsQuery = (projectId: string, runId: string) =>
  queryOptions({
    queryKey: ['run', projectId, runId, 'steps'],
    queryFn: () => readSteps(projectId, runId),
  })

/** All steps of a run, page by page. */
async function readSteps(projectId: string, runId: string): Promise<Step[]> {
  const steps: Step[] = []
  for (let cursor: string | null = null; ; ) {
    const page: Page<Step> = await get(projectPath(projectId, `/runs/${runId}/steps`), {
      query: { limit: 200, cursor },
    })
    steps.push(...page.items)
    cursor = page.next_cursor
    if (cursor === null) return steps
  }
}
