// Stored flows and templates: how the editor reads, checks, writes and starts them. A change of a stored flow is not in
// the live feed, so a page reads its flow again when its window is looked at.
import { queryOptions } from '@tanstack/react-query'
import type { Problem } from '../../../src/kernel/explain-issue.ts'
import { get, type Page, patch, post, remove, startWork } from './client.ts'
import { LONGEST_PAGE, readAll } from './pages.ts'
import { projectPath } from './queries.ts'

export interface FlowDefinition {
  id: string
  project_id: string
  /** app: follows the code of an app module; requests change `enabled` alone. */
  source: 'api' | 'app'
  name: string
  root: unknown
  enabled: boolean
  created_at: string
  updated_at: string
}

export interface TemplateDefinition {
  name: string
  title: string
  description: string
  usage: string
  pattern: string
  example: { input: unknown }
  root: unknown
}

export interface FlowVerdict {
  valid: boolean
  errors: Problem[]
  /** Steps of a valid flow that can only fail. Left out if there are none. */
  warnings?: Problem[]
}

export interface Recommendation {
  pattern: string
  definition: unknown
  estimate: { workers: number; model_calls: number; tokens: number; duration: number }
  reasoning: string
}

export const definitionsQuery = (projectId: string) =>
  queryOptions({
    queryKey: ['flow', projectId, 'list', 'definitions'],
    queryFn: () => readAll<FlowDefinition>(projectPath(projectId, '/flows'), { limit: LONGEST_PAGE }),
  })

export const definitionQuery = (projectId: string, flowId: string) =>
  queryOptions({ queryKey: ['flow', projectId, flowId], queryFn: () => readDefinition(projectId, flowId) })

export const readDefinition = (projectId: string, flowId: string): Promise<FlowDefinition> =>
  get<FlowDefinition>(projectPath(projectId, `/flows/${flowId}`))

export const templateDefinitionsQuery = (projectId: string) =>
  queryOptions({
    queryKey: ['flow_template', projectId, 'list'],
    queryFn: () => get<Page<TemplateDefinition>>(projectPath(projectId, '/flow-templates')),
    staleTime: Number.POSITIVE_INFINITY,
  })

/** Everything that is wrong with a tree. Agents may come and go meanwhile, so an answer does not hold for ever. */
export const verdictQuery = (projectId: string, root: unknown) =>
  queryOptions({
    queryKey: ['flow_verdict', projectId, root],
    queryFn: ({ signal }) => post<FlowVerdict>(projectPath(projectId, '/flows/validate'), { root }, { signal }),
    staleTime: 30_000,
    gcTime: 60_000,
  })

/** A model may be asked, which takes up to a minute. */
export const recommendPattern = (projectId: string, workload: string): Promise<Recommendation> =>
  post<Recommendation>(projectPath(projectId, '/flows/recommend'), { workload }, { patienceMs: 90_000 })

export const createDefinition = (
  projectId: string,
  flow: Pick<FlowDefinition, 'name' | 'root'>,
): Promise<FlowDefinition> => post<FlowDefinition>(projectPath(projectId, '/flows'), flow)

export const changeDefinition = (
  { project_id, id }: FlowDefinition,
  change: Partial<Pick<FlowDefinition, 'name' | 'root' | 'enabled'>>,
): Promise<FlowDefinition> => patch<FlowDefinition>(projectPath(project_id, `/flows/${id}`), change)

export const deleteDefinition = ({ project_id, id }: FlowDefinition): Promise<null> =>
  remove(projectPath(project_id, `/flows/${id}`))

export interface FlowStart {
  /** A stored flow, a tree, a template, or the flow of an earlier run: one of them is given. */
  flow_id?: string
  root?: unknown
  template?: string
  rerun_of?: string
  input?: unknown
  /** As typed: the API refuses a text that is no number. */
  workers?: number | string | null
  timeout?: number | string | null
}

export const startFlow = (projectId: string, start: FlowStart): Promise<{ id: string }> =>
  startWork<{ id: string }>(projectPath(projectId, '/flow-runs'), start)
