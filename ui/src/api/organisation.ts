// The organisation: the tree of agents, their tasks, attempts and messages.
import { queryOptions } from '@tanstack/react-query'
import type { AgentMessage } from '../../../src/kernel/agent-message.ts'
import type { AgentHealth, OrgAgent } from '../../../src/kernel/org.ts'
import type { Run } from '../../../src/kernel/run.ts'
import type { Task } from '../../../src/kernel/task.ts'
import { get, type Page } from './client.ts'
import { LONGEST_PAGE, pagedQuery, readAll } from './pages.ts'
import { projectPath } from './queries.ts'

/** The load of an agent changes with its tasks, of which the agent's own changes do not tell. */
const READ_EVERY_MS = 10_000

export const orgQuery = (projectId: string) =>
  queryOptions({
    queryKey: ['agent', projectId, 'list', 'org'],
    queryFn: async () => (await get<{ items: OrgAgent[] }>(projectPath(projectId, '/org'))).items,
    refetchInterval: READ_EVERY_MS,
  })

export const everyAgent = (tree: readonly OrgAgent[]): OrgAgent[] =>
  tree.flatMap((agent) => [agent, ...everyAgent(agent.subordinates)])

export const healthQuery = (projectId: string) =>
  queryOptions({
    queryKey: ['agent', projectId, 'list', 'health'],
    queryFn: () => readAll<AgentHealth>(projectPath(projectId, '/org/health'), { limit: LONGEST_PAGE }),
    refetchInterval: READ_EVERY_MS,
  })

/** The tasks that agents have in hand: not more than agents may work at once, and those that wait for subtasks. */
export const inHandQuery = (projectId: string) =>
  queryOptions({
    queryKey: ['task', projectId, 'list', 'in-hand'],
    queryFn: () =>
      readAll<Task>(projectPath(projectId, '/tasks'), { kind: 'work', status: 'in-progress', limit: LONGEST_PAGE }),
  })

export interface TaskFilter {
  assigned_to?: string
  status?: string
  parent_task_id?: string
}

export const tasksQuery = (projectId: string, filter: TaskFilter) =>
  pagedQuery<Task>(['task', projectId, 'list', filter], projectPath(projectId, '/tasks'), {
    kind: 'work',
    limit: 30,
    ...filter,
  })

export const messagesQuery = (projectId: string, agentId: string) =>
  pagedQuery<AgentMessage>(
    ['message', projectId, 'list', agentId],
    projectPath(projectId, `/agents/${agentId}/messages`),
    { limit: 50 },
  )

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
