// The organisation: the tree of agents, their tasks, attempts and messages.
import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import type { AgentMessage } from '../../../src/kernel/agent-message.ts'
import type { AgentHealth, OrgAgent } from '../../../src/kernel/org.ts'
import type { Run } from '../../../src/kernel/run.ts'
import type { Task } from '../../../src/kernel/task.ts'
import { get, type Page } from './client.ts'
import { projectPath } from './queries.ts'

/** The load of an agent changes with its tasks, of which the agent's own changes do not tell. */
const READ_EVERY_MS = 10_000

export const orgQuery = (projectId: string) =>
  queryOptions({
    queryKey: ['agent', projectId, 'list', 'org'],
    queryFn: async () => (await get<{ items: OrgAgent[] }>(projectPath(projectId, '/org'))).items,
    refetchInterval: READ_EVERY_MS,
  })

const HEALTH_PAGE = 200
const MOST_HEALTH_PAGES = 10

export const healthQuery = (projectId: string) =>
  queryOptions({
    queryKey: ['agent', projectId, 'list', 'health'],
    queryFn: () => readHealth(projectId),
    refetchInterval: READ_EVERY_MS,
  })

async function readHealth(projectId: string): Promise<AgentHealth[]> {
  const all: AgentHealth[] = []
  let cursor: string | null = null
  for (let page = 0; page < MOST_HEALTH_PAGES; page++) {
    const answer: Page<AgentHealth> = await get(projectPath(projectId, '/org/health'), {
      query: { limit: HEALTH_PAGE, cursor },
    })
    all.push(...answer.items)
    cursor = answer.next_cursor
    if (cursor === null) break
  }
  return all
}

/** The tasks that agents have in hand: not more than agents may work at once, and those that wait for subtasks. */
export const inHandQuery = (projectId: string) =>
  queryOptions({
    queryKey: ['task', projectId, 'list', 'in-hand'],
    queryFn: async () => {
      const query = { kind: 'work', status: 'in-progress', limit: 200 }
      return (await get<Page<Task>>(projectPath(projectId, '/tasks'), { query })).items
    },
  })

export interface TaskFilter {
  assigned_to?: string
  status?: string
  parent_task_id?: string
}

export const tasksQuery = (projectId: string, filter: TaskFilter) =>
  infiniteQueryOptions({
    queryKey: ['task', projectId, 'list', filter],
    queryFn: ({ pageParam: cursor }) =>
      get<Page<Task>>(projectPath(projectId, '/tasks'), { query: { kind: 'work', limit: 30, ...filter, cursor } }),
    initialPageParam: null as string | null,
    getNextPageParam: ({ next_cursor }) => next_cursor,
  })

export const messagesQuery = (projectId: string, agentId: string) =>
  infiniteQueryOptions({
    queryKey: ['message', projectId, 'list', agentId],
    queryFn: ({ pageParam: cursor }) =>
      get<Page<AgentMessage>>(projectPath(projectId, `/agents/${agentId}/messages`), { query: { limit: 50, cursor } }),
    initialPageParam: null as string | null,
    getNextPageParam: ({ next_cursor }) => next_cursor,
  })

/** Each attempt at a task is a run. */
export const attemptsQuery = (projectId: string, taskId: string) =>
  queryOptions({
    queryKey: ['run', projectId, 'list', { task_id: taskId }],
    queryFn: async () => {
      const query = { task_id: taskId, limit: 50 }
      return get<Page<Run>>(projectPath(projectId, '/runs'), { query })
    },
  })

/** Reads again what starting, stopping, paying and giving work may have changed. */
export const organisationReads = (projectId: string): string[][] =>
  ['agent', 'task', 'message'].map((kind) => [kind, projectId])
