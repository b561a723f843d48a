// The reads of the playground: layouts, and the open question of a run.
import { queryOptions } from '@tanstack/react-query'
import type { AgentRunAnswer } from '../../../src/kernel/supervisor.ts'
import type { Task } from '../../../src/kernel/task.ts'
import { get, patch, post } from './client.ts'
import { findIn, LONGEST_PAGE } from './pages.ts'
import { projectPath } from './queries.ts'

export const CHAT_PATH = '/v1/agent/chat'

/** The routes under /v1 learn the project from this header. */
export const ofProject = (projectId: string): Record<string, string> => ({ 'x-project-id': projectId })

export interface LayoutContext {
  scenario: string
  [fact: string]: unknown
}

/** A model may arrange the layout, which takes its time. */
const LAYOUT_PATIENCE_MS = 60_000

/** The components of a layout as they came: each of them is checked where it is drawn. */
export const layoutQuery = (projectId: string, context: LayoutContext) =>
  queryOptions({
    queryKey: ['layout', projectId, context],
    queryFn: async () => {
      const options = { headers: ofProject(projectId), patienceMs: LAYOUT_PATIENCE_MS }
      const { components } = await post<{ components: unknown[] }>('/v1/genui/layout', { context }, options)
      return components
    },
    refetchOnWindowFocus: false,
  })

/** The open question of a run, or null. */
export const questionQuery = (projectId: string, runId: string) =>
  queryOptions({
    queryKey: ['task', projectId, 'list', 'question', runId],
    queryFn: () =>
      findIn<Task>(
        projectPath(projectId, '/tasks'),
        { kind: 'escalation', status: 'pending', limit: LONGEST_PAGE },
        (task) => task.run_id === runId,
      ),
  })

export const readAnswer = (projectId: string, runId: string): Promise<AgentRunAnswer> =>
  get<AgentRunAnswer>(`/v1/agent/runs/${runId}`, { headers: ofProject(projectId) })

export const cancelRun = (projectId: string, runId: string): Promise<unknown> =>
  post(projectPath(projectId, `/runs/${runId}/cancel`), {}, { patienceMs: LAYOUT_PATIENCE_MS })

export type TaskAction =
  | { type: 'approve'; taskId: string }
  | { type: 'reject'; taskId: string; reason: string }
  | { type: 'answer'; taskId: string; answer: string }

export function decideTask(projectId: string, action: TaskAction): Promise<unknown> {
  const path = projectPath(projectId, `/tasks/${action.taskId}`)
  switch (action.type) {
    case 'approve':
      return post(`${path}/approve`)
    case 'reject':
      return post(`${path}/reject`, action.reason === '' ? {} : { reason: action.reason })
    case 'answer':
      return patch(path, { status: 'completed', result: action.answer })
  }
}
