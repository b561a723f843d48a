// The queries of the pages. A key begins with its kind and project, so that the live stream knows what to read again.
import { QueryClient, queryOptions } from '@tanstack/react-query'
import type { Agent } from '../../../src/kernel/agent.ts'
import type { Project } from '../../../src/kernel/project.ts'
import type { Run, RunEffects, RunWait } from '../../../src/kernel/run.ts'
import { ApiError, get, type Page } from './client.ts'
import { ALL, LONGEST_PAGE, pagedQuery, readAll, readUpTo } from './pages.ts'
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

const MOST_PROJECT_PAGES = 25

/** All projects that the person can see, newest first. The cursor is null unless there are more than that many pages. */
export const projectsQuery = queryOptions({
  queryKey: ['projects'],
  queryFn: () => readUpTo<Project>('/api/projects', { limit: LONGEST_PAGE }, MOST_PROJECT_PAGES),
})

/** The newest agents: all of them in most projects. `useAgentNames` knows the names of the others too. */
export const newestAgentsQuery = (projectId: string) =>
  queryOptions({
    queryKey: ['agent', projectId, 'list'],
    queryFn: () => get<Page<Agent>>(projectPath(projectId, '/agents'), { query: { limit: LONGEST_PAGE } }),
  })

export const agentQuery = (projectId: string, agentId: string) =>
  queryOptions({
    queryKey: ['agent', projectId, agentId],
    queryFn: () => get<Agent>(projectPath(projectId, `/agents/${agentId}`)),
  })

export interface RunFilter {
  q?: string | undefined
  status?: string | undefined
  agent_id?: string | undefined
  parent_run_id?: string | undefined
  created_after?: string | undefined
}

/** The newest runs, as many as a list to choose from has room for. */
export const newestRunsQuery = (projectId: string, filter: RunFilter = {}) =>
  queryOptions({
    queryKey: ['run', projectId, 'list', filter],
    queryFn: () => get<Page<Run>>(projectPath(projectId, '/runs'), { query: { limit: 100, ...filter } }),
  })

export const runPagesQuery = (projectId: string, filter: RunFilter = {}) =>
  pagedQuery<Run>(['run', projectId, 'list', 'pages', filter], projectPath(projectId, '/runs'), {
    limit: 100,
    ...filter,
  })

export const runQuery = (projectId: string, runId: string) =>
  queryOptions({
    queryKey: ['run', projectId, runId],
    queryFn: () => get<Run>(projectPath(projectId, `/runs/${runId}`)),
  })

export const stepsQuery = (projectId: string, runId: string) =>
  queryOptions({
    queryKey: ['run', projectId, runId, 'steps'],
    queryFn: () => readAll<Step>(projectPath(projectId, `/runs/${runId}/steps`), { limit: LONGEST_PAGE }, ALL),
  })

/** The times in which the run waited, oldest first. */
export const waitsQuery = (projectId: string, runId: string) =>
  queryOptions({
    queryKey: ['run', projectId, runId, 'waits'],
    queryFn: () => readAll<RunWait>(projectPath(projectId, `/runs/${runId}/waits`), { limit: LONGEST_PAGE }, ALL),
  })

/** The calls of a run, and of the runs that it continues, that took effect or may have; oldest first. */
export const effectsQuery = (projectId: string, runId: string) =>
  queryOptions({
    queryKey: ['run', projectId, runId, 'effects'],
    queryFn: () => get<RunEffects>(projectPath(projectId, `/runs/${runId}/effects`)),
  })

/** The calls that are the same as that one of the run, in all runs of the same work; oldest first. */
export const sameCallsQuery = (projectId: string, runId: string, callId: string) =>
  queryOptions({
    queryKey: ['run', projectId, runId, 'effects', callId],
    queryFn: () => get<RunEffects>(projectPath(projectId, `/runs/${runId}/effects`), { query: { same_as: callId } }),
  })

const MAX_CHAIN = 100

/** The input that the work began with: a run that continues or forks another has only what was added. */
export const firstInputQuery = (projectId: string, run: Run) =>
  queryOptions({
    queryKey: ['run', projectId, run.id, 'first-input'],
    queryFn: async () => {
      let first = run
      for (let count = 0; count < MAX_CHAIN; count++) {
        const before = first.resumed_from ?? first.forked_from
        if (before === null) break
        first = await get<Run>(projectPath(projectId, `/runs/${before}`))
      }
      return first.input
    },
    staleTime: Number.POSITIVE_INFINITY,
  })
