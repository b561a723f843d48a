// The reads of the pages of agents: the agents, all that a definition can name, and the triggers of an agent.
import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import type { Agent } from '../../../src/kernel/agent.ts'
import type { Hook } from '../../../src/kernel/hook.ts'
import type { ListedTool } from '../../../src/kernel/listed-tool.ts'
import type { GraphObject, ProcessingEntry } from '../../../src/kernel/object.ts'
import type { Settings } from '../../../src/kernel/project.ts'
import type { ListedPrompt } from '../../../src/kernel/prompt.ts'
import type { Provider } from '../../../src/kernel/provider.ts'
import type { Run } from '../../../src/kernel/run.ts'
import type { Schedule } from '../../../src/kernel/schedule.ts'
import { ApiError, get, type Page } from './client.ts'
import { projectPath } from './queries.ts'

/** The definitions of other things change rarely. */
const RARELY_MS = 60_000
/** Pages that are read at once for a list to choose from; more choices than these are typed. */
const MOST_PAGES = 20

export const agentPath = (projectId: string, agentId: string, rest = ''): string =>
  projectPath(projectId, `/agents/${agentId}${rest}`)

/** A list that is read page by page, with "More". */
const pagesOf = <Item>(queryKey: readonly unknown[], path: string, query: Record<string, string | number> = {}) =>
  infiniteQueryOptions({
    queryKey,
    queryFn: ({ pageParam }: { pageParam: string | null }) =>
      get<Page<Item>>(path, { query: { ...query, cursor: pageParam } }),
    initialPageParam: null,
    getNextPageParam: (page: Page<Item>) => page.next_cursor,
  })

/** All items of a list, page by page. */
async function readAll<Item>(path: string, query: Record<string, string | number> = {}): Promise<Item[]> {
  const items: Item[] = []
  let cursor: string | null = null
  for (let pages = 0; pages < MOST_PAGES; pages++) {
    const page: Page<Item> = await get(path, { query: { ...query, cursor } })
    items.push(...page.items)
    cursor = page.next_cursor
    if (cursor === null) break
  }
  return items
}

export const agentQuery = (projectId: string, agentId: string) =>
  queryOptions({
    queryKey: ['agent', projectId, agentId],
    queryFn: () => get<Agent>(agentPath(projectId, agentId)),
  })

export const agentPagesQuery = (projectId: string) =>
  pagesOf<Agent>(['agent', projectId, 'list', 'pages'], projectPath(projectId, '/agents'), { limit: 100 })

export const runPagesQuery = (projectId: string, agentId: string) =>
  pagesOf<Run>(['run', projectId, 'list', 'pages', agentId], projectPath(projectId, '/runs'), {
    limit: 50,
    agent_id: agentId,
  })

export const hookPagesQuery = (projectId: string, agentId: string) =>
  pagesOf<Hook>(['agent', projectId, agentId, 'hooks'], agentPath(projectId, agentId, '/hooks'), { limit: 50 })

export const logPagesQuery = (projectId: string, agentId: string) =>
  pagesOf<ProcessingEntry>(
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
      return await readAll<Provider>('/api/providers', { limit: 200 })
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
        readAll<{ id: string; name: string }>(projectPath(projectId, '/flows'), { limit: 200 }),
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
      const prompts = await readAll<ListedPrompt>(projectPath(projectId, '/prompts'), { limit: 200 })
      return [...new Set(prompts.map(({ prompt_id }) => prompt_id))]
    },
    staleTime: RARELY_MS,
  })

/** The types of the newest objects. */
export const objectTypesQuery = (projectId: string) =>
  queryOptions({
    queryKey: ['object', projectId, 'types'],
    queryFn: async () => {
      const { items } = await get<Page<GraphObject>>(projectPath(projectId, '/objects'), { query: { limit: 200 } })
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
    queryFn: async () => {
      const all = await readAll<Schedule>(projectPath(projectId, '/schedule'), { limit: 200 })
      return all.find(({ agent_id }) => agent_id === agentId) ?? null
    },
  })
