// The reads of the pages of flows. The journal of a flow run is not kept here: its page has a store of its own.
import { queryOptions } from '@tanstack/react-query'
import type { Topology } from '../../../src/kernel/flow.ts'
import type { FlowProgress, FlowRun } from '../../../src/kernel/flow-run.ts'
import { get, type Page } from './client.ts'
import { LONGEST_PAGE, pagedQuery, readAll } from './pages.ts'
import { projectPath } from './queries.ts'

export interface StoredFlow {
  id: string
  source: 'api' | 'app'
  name: string
  root: { type?: string }
  enabled: boolean
  updated_at: string
}

export interface FlowTemplate {
  name: string
  title: string
  description: string
  usage: string
  pattern: string
  example: { input: unknown }
}

export type FlowAction = 'cancel' | 'add_workers' | 'switch_topology' | 'adjust'

export interface FlowAlert {
  id: string
  flow_run_id: string
  kind: string
  progress: FlowProgress
  suspected_cause: string
  actions: FlowAction[]
  adjust: { timeout?: number; workers?: number } | null
  created_at: string
  acked_at: string | null
}

export interface FlowTopology {
  current: Topology | null
  history: { from: Topology; to: Topology; reason: string; at: string; switch_ms: number; moved: number }[]
  handovers: { task_id: string; from: string; to: string; at: string }[]
  by_topology: Partial<Record<Topology, { tasks: number; throughput: number; wait: number; duration: number }>>
  recommendation: { topology: Topology; reason: string } | null
}

export interface FlowMetrics {
  parallelism_factor: number
  worker_utilization: number
  bottlenecks: { task_id: string; duration: number; share: number; blocks: string[] }[]
  recommendations: string[]
}

const MOST_ACTIVE = 50
const EVERY_MS = 1_000
/** Without a run under way the list waits for the feed of changes; this is for servers that have none. */
const REST_EVERY_MS = 5_000
const FACTS_EVERY_MS = 10_000

export const flowRunPath = (projectId: string, flowRunId: string, rest = ''): string =>
  projectPath(projectId, `/flow-runs/${flowRunId}${rest}`)

export const isUnderWay = ({ status }: Pick<FlowRun, 'status'>): boolean => status === 'queued' || status === 'running'

/** A run that is being cancelled ends by itself, and takes no further change. */
export const isChangeable = (run: Pick<FlowRun, 'status' | 'cancel_requested_at'>): boolean =>
  isUnderWay(run) && run.cancel_requested_at === null

/** The status as people are told it. A flow run of a halted project does not go on, and so it has no ETA either. */
export function statusOfFlow(
  run: Pick<FlowRun, 'status' | 'cancel_requested_at' | 'progress' | 'waiting'>,
  isHalted: boolean,
): string {
  if (!isUnderWay(run)) return run.status
  if (!isChangeable(run)) return 'cancelling'
  if (isHalted) return 'halted'
  return run.waiting > 0 && run.waiting >= run.progress.running ? 'waiting' : run.status
}

/** "map-reduce": the type of the root as people write it. */
export const patternName = (pattern: string): string => pattern.replaceAll('_', '-')

export const storedFlowsQuery = (projectId: string) =>
  queryOptions({
    queryKey: ['flow', projectId, 'list'],
    queryFn: () => readAll<StoredFlow>(projectPath(projectId, '/flows'), { limit: LONGEST_PAGE }),
  })

export const flowTemplatesQuery = (projectId: string) =>
  queryOptions({
    queryKey: ['flow_template', projectId, 'list'],
    queryFn: () => get<Page<FlowTemplate>>(projectPath(projectId, '/flow-templates')),
    staleTime: Number.POSITIVE_INFINITY,
  })

/** The flow runs under way, newest first, read every second while there are any. */
export const activeFlowRunsQuery = (projectId: string) =>
  queryOptions({
    queryKey: ['flow_run', projectId, 'list', 'active'],
    queryFn: () => readActive(projectId),
    refetchInterval: (query) => ((query.state.data?.length ?? 0) > 0 ? EVERY_MS : REST_EVERY_MS),
  })

async function readActive(projectId: string): Promise<FlowRun[]> {
  const pages = await Promise.all(
    ['running', 'queued'].map((status) =>
      get<Page<FlowRun>>(projectPath(projectId, '/flow-runs'), { query: { status, limit: MOST_ACTIVE } }),
    ),
  )
  const all = pages.flatMap(({ items }) => items)
  return [...new Map(all.map((run) => [run.id, run])).values()].toSorted((a, b) =>
    b.created_at.localeCompare(a.created_at),
  )
}

export interface FlowRunFilter {
  status?: string | undefined
  flow_id?: string | undefined
}

export const flowRunsQuery = (projectId: string, filter: FlowRunFilter) =>
  pagedQuery<FlowRun>(['flow_run', projectId, 'list', filter], projectPath(projectId, '/flow-runs'), {
    limit: 50,
    ...filter,
  })

export const flowRunQuery = (projectId: string, flowRunId: string) =>
  queryOptions({
    queryKey: ['flow_run', projectId, flowRunId],
    queryFn: () => get<FlowRun>(flowRunPath(projectId, flowRunId)),
    refetchInterval: (query) => (query.state.data && isUnderWay(query.state.data) ? EVERY_MS : false),
  })

export const flowAlertsQuery = (projectId: string, flowRunId: string, isLive: boolean) =>
  queryOptions({
    queryKey: ['alert', projectId, 'list', flowRunId],
    queryFn: () =>
      get<Page<FlowAlert>>(projectPath(projectId, '/alerts'), {
        query: { flow_run_id: flowRunId, acked: false, limit: 20 },
      }),
    refetchInterval: isLive ? REST_EVERY_MS : false,
  })

// The next two are computed from the whole journal, so their keys are apart from those that every change reads again.

export const flowTopologyQuery = (projectId: string, flowRunId: string, isLive: boolean) =>
  queryOptions({
    queryKey: ['flow_facts', projectId, flowRunId, 'topology'],
    queryFn: () => get<FlowTopology>(flowRunPath(projectId, flowRunId, '/topology')),
    refetchInterval: (query) => (isLive && query.state.data?.current !== null ? REST_EVERY_MS : false),
  })

export const flowMetricsQuery = (projectId: string, flowRunId: string, isLive: boolean) =>
  queryOptions({
    queryKey: ['flow_facts', projectId, flowRunId, 'metrics'],
    queryFn: () => get<FlowMetrics>(flowRunPath(projectId, flowRunId, '/metrics')),
    refetchInterval: isLive ? FACTS_EVERY_MS : false,
  })
