// The reads of the pages of agents: the agents, all that a definition can name, and the triggers of an agent.
import { queryOptions } from '@tanstack/react-query'
import type { Agent } from '../../../src/kernel/agent.ts'
import type { Hook } from '../../../src/kernel/hook.ts'
import type { ListedTool } from '../../../src/kernel/listed-tool.ts'
import type { GraphObject, ProcessingEntry } from '../../../src/kernel/object.ts'
import type { Settings } from '../../../src/kernel/project.ts'
import type { ListedPrompt } from '../../../src/kernel/prompt.ts'
import type { Provider } from '../../../src/kernel/provider.ts'
import type { Schedule } from '../../../src/kernel/schedule.ts'
import { ApiError, get, type Page } from './client.ts'
import { findIn, LONGEST_PAGE, pagedQuery, readAll } from './pages.ts'
import { projectPath } from './queries.ts'

/** The definitions of other things change rarely. */
const RARELY_MS = 60_000

export const agentPath = (projectId: string, agentId: string, rest = ''): string =>
  projectPath(projectId, `/agents/${agentId}${rest}`)

export const agentPagesQuery = (projectId: string) =>
  pagedQuery<Agent>(['agent', projectId, 'list', 'pages'], projectPath(projectId, '/agents'), { limit: 100 })

export const hookPagesQuery = (projectId: string, agentId: string) =>
  pagedQuery<Hook>(['agent', projectId, agentId, 'hooks'], agentPath(projectId, agentId, '/hooks'), { limit: 50 })

export const logPagesQuery = (projectId: string, agentId: string) =>
  pagedQuery<ProcessingEntry>(
    ['agent', projectId, agentId, 'processing-log'],
    agentPath(projectId, agentId, '/processing-log'),
    { limit: 50 },
  )

export const toolsQuery = (projectId: string) =>
  queryOptions({
    queryKey: ['tools', projectId],
    queryFn: () => readAll<ListedTool>(projectPath(projectId, '/tools')),
    staleTime: RARELY_MS,
  })

/** Only the instance admin may read the providers; for everybody else the list is empty, and names are typed. */
export const providersQuery = queryOptions({
  queryKey: ['providers'],
  queryFn: async () => {
    try {
      return await readAll<Provider>('/api/providers', { limit: LONGEST_PAGE })
    } catch (error) {
      if (error instanceof ApiError && error.status === 403) return []
      throw error
    }
  },
  staleTime: RARELY_MS,
})

export const settingsQuery = (projectId: string) =>
  queryOptions({
    queryKey: ['settings', projectId],
    queryFn: () => get<Settings>(projectPath(projectId, '/settings')),
    staleTime: RARELY_MS,
  })

export interface FlowChoice {
  name: string
  /** Null for a template, which has no page. */
  id: string | null
  title: string
}

/** The stored flows, and the templates that no stored flow hides by its name. */
export const flowChoicesQuery = (projectId: string) =>
  queryOptions({
    queryKey: ['flow-choices', projectId],
    queryFn: async (): Promise<FlowChoice[]> => {
      const [flows, templates] = await Promise.all([
        readAll<{ id: string; name: string }>(projectPath(projectId, '/flows'), { limit: LONGEST_PAGE }),
        readAll<{ name: string; title: string }>(projectPath(projectId, '/flow-templates')),
      ])
      const stored = flows.map(({ id, name }) => ({ id, name, title: 'A flow of this project' }))
      const names = new Set(stored.map(({ name }) => name))
      return [...stored, ...templates.filter(({ name }) => !names.has(name)).map((each) => ({ ...each, id: null }))]
    },
    staleTime: RARELY_MS,
  })

/** The ids of the prompts in the library. */
export const promptIdsQuery = (projectId: string) =>
  queryOptions({
    queryKey: ['prompt-ids', projectId],
    queryFn: async () => {
      const prompts = await readAll<ListedPrompt>(projectPath(projectId, '/prompts'), { limit: LONGEST_PAGE })
      return [...new Set(prompts.map(({ prompt_id }) => prompt_id))]
    },
    staleTime: RARELY_MS,
  })

/** The types of the newest objects. */
export const objectTypesQuery = (projectId: string) =>
  queryOptions({
    queryKey: ['object', projectId, 'types'],
    queryFn: async () => {
      const { items } = await get<Page<GraphObject>>(projectPath(projectId, '/objects'), {
        query: { limit: LONGEST_PAGE },
      })
      return [...new Set(items.map(({ type }) => type))].toSorted()
    },
    staleTime: RARELY_MS,
  })

export interface SchedulePreview {
  cron_schedule: string
  timezone: string
  items: string[]
}

/** The next five times; null where Muster has no such route. */
export const schedulePreviewQuery = (projectId: string, cron: string, timezone: string) =>
  queryOptions({
    queryKey: ['schedule', projectId, 'preview', cron, timezone],
    queryFn: async () => {
      try {
        return await get<SchedulePreview>(projectPath(projectId, '/schedule/preview'), {
          query: { cron_schedule: cron, timezone, count: 5 },
        })
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) return null
        throw error
      }
    },
    staleTime: RARELY_MS,
  })

/** When the schedule of an agent started it last and starts it next; null for an agent without a schedule. */
export const agentScheduleQuery = (projectId: string, agentId: string) =>
  queryOptions({
    queryKey: ['agent', projectId, agentId, 'schedule'],
    queryFn: () =>
      findIn<Schedule>(
        projectPath(projectId, '/schedule'),
        { limit: LONGEST_PAGE },
        ({ agent_id }) => agent_id === agentId,
      ),
  })
