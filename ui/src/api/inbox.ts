// Everything that waits for a person: suggestions, questions, undecided outcomes, used-up budgets, work for people.
import { queryOptions, useQuery } from '@tanstack/react-query'
import type { Task } from '../../../src/kernel/task.ts'
import { get } from './client.ts'
import { LONGEST_PAGE, readAll, readUpTo } from './pages.ts'
import { projectPath, queries } from './queries.ts'
import { suggestedCall } from './task-words.ts'

export const inboxKinds = ['suggestion', 'call', 'question', 'outcome', 'anew', 'budget', 'escalation', 'work'] as const
export type InboxKind = (typeof inboxKinds)[number]

/** The words of a task's metadata are only read here: people and agents can write them, and the API does not trust them. */
export function inboxKindOf(task: Pick<Task, 'kind' | 'run_id' | 'metadata' | 'changes'>): InboxKind {
  const { kind, run_id, metadata } = task
  if (kind === 'suggestion') return suggestedCall(task) === null ? 'suggestion' : 'call'
  if (kind === 'work') return 'work'
  if (metadata.kind === 'begin_anew' && Array.isArray(metadata.calls)) return 'anew'
  if (run_id !== null) return metadata.kind === 'outcome_unknown' ? 'outcome' : 'question'
  return typeof metadata.exhaustedAgentId === 'string' ? 'budget' : 'escalation'
}

export interface Waiting {
  items: Task[]
  /** True if more of them may wait than were read. */
  hasMore: boolean
}

const PAGE = 50
const READ_EVERY_MS = 30_000

/** The newest of each kind: `pages` times fifty suggestions, and as many escalations and tasks for people. */
export const waitingQuery = (projectId: string, pages = 1) =>
  queryOptions({
    queryKey: ['task', projectId, 'list', 'waiting', pages],
    queryFn: ({ signal }) => readWaiting(projectId, pages, signal),
    // The stream of changes tells sooner; this is for a stream that is cut.
    refetchInterval: READ_EVERY_MS,
  })

export const taskQuery = (projectId: string, taskId: string) =>
  queryOptions({
    queryKey: ['task', projectId, taskId],
    queryFn: () => get<Task>(projectPath(projectId, `/tasks/${taskId}`)),
  })

/** How many things wait for a person: "7", or "50+" if more wait than were read. Null if none is known. */
export function useInboxCount(projectId: string): string | null {
  const { data } = useQuery(waitingQuery(projectId))
  return data && data.items.length > 0 ? `${data.items.length}${data.hasMore ? '+' : ''}` : null
}

/** Reads again what a decision may have changed. */
export async function readTasksAgain(projectId: string): Promise<void> {
  await queries.invalidateQueries({ queryKey: ['task', projectId, 'list'] })
}

async function readWaiting(projectId: string, pages: number, signal: AbortSignal): Promise<Waiting> {
  const read = (filter: { kind: Task['kind']; assigned_to?: 'none' }) =>
    readUpTo<Task>(projectPath(projectId, '/tasks'), { ...filter, status: 'pending', limit: PAGE }, pages, signal)
  const parts = await Promise.all([
    read({ kind: 'suggestion' }),
    read({ kind: 'escalation' }),
    // Work that is assigned is an agent's.
    read({ kind: 'work', assigned_to: 'none' }),
  ])
  return {
    items: parts.flatMap(({ items }) => items),
    hasMore: parts.some(({ next_cursor }) => next_cursor !== null),
  }
}

/** The calls of a run that wait for approval, by the tasks that decide about them. */
export const awaitedCallsQuery = (projectId: string, runId: string) =>
  queryOptions({
    queryKey: ['task', projectId, 'list', 'calls', runId],
    queryFn: async () => {
      const query = { kind: 'suggestion', status: 'pending', limit: LONGEST_PAGE }
      const tasks = await readAll<Task>(projectPath(projectId, '/tasks'), query)
      return tasks.flatMap((task) => {
        const call = task.run_id === runId ? suggestedCall(task) : null
        return call === null ? [] : [{ id: task.id, tool: call.tool }]
      })
    },
  })
