// Reads of the home page: the newest of each project.
import { queryOptions } from '@tanstack/react-query'
import type { Agent } from '../../../src/kernel/agent.ts'
import type { FlowRun } from '../../../src/kernel/flow-run.ts'
import type { Run } from '../../../src/kernel/run.ts'
import type { Amounts, UsageReport } from '../../../src/kernel/usage.ts'
import { ApiError, get, type Page, serverNow } from './client.ts'
import { projectPath } from './queries.ts'

const MOST = 20
const DAY_MS = 24 * 60 * 60_000

export const homeRunsQuery = (projectId: string, status: Run['status']) =>
  queryOptions({
    queryKey: ['run', projectId, 'list', 'home', status],
    queryFn: () => get<Page<Run>>(projectPath(projectId, '/runs'), { query: { status, limit: MOST } }),
  })

export const homeFlowRunsQuery = (projectId: string, status: FlowRun['status']) =>
  queryOptions({
    queryKey: ['flow_run', projectId, 'list', 'home', status],
    queryFn: () => get<Page<FlowRun>>(projectPath(projectId, '/flow-runs'), { query: { status, limit: MOST } }),
  })

/** The agents whose tokens run short. Runs use tokens, so these agents are read again when a run has changed. */
export const shortAgentsQuery = (projectId: string) =>
  queryOptions({
    queryKey: ['run', projectId, 'list', 'home', 'tokens'],
    queryFn: () => get<Page<Agent>>(projectPath(projectId, '/agents'), { query: { tokens: 'short', limit: MOST } }),
  })

export interface OpenAlert {
  id: string
  flow_run_id: string
  suspected_cause: string
  created_at: string
}

export const openAlertsQuery = (projectId: string) =>
  queryOptions({
    queryKey: ['alert', projectId, 'list', 'home'],
    queryFn: () => get<Page<OpenAlert>>(projectPath(projectId, '/alerts'), { query: { acked: 'false', limit: MOST } }),
  })

export type Spent = Pick<Amounts, 'total_tokens' | 'cost_usd'>

export interface TwoDays {
  today: Spent
  yesterday: Spent
}

const NOTHING: Spent = { total_tokens: 0, cost_usd: null }

export const twoDaysQuery = (projectId: string) =>
  queryOptions({
    queryKey: ['usage', projectId, 'list', 'home'],
    queryFn: () => readTwoDays(projectId),
    refetchInterval: 60_000,
  })

/** Null on a Muster that keeps no usage by day. Days are those of UTC. */
async function readTwoDays(projectId: string): Promise<TwoDays | null> {
  const [to, from] = [0, DAY_MS].map((ago) => new Date(serverNow() - ago).toISOString().slice(0, 10))
  try {
    const { days } = await get<UsageReport>(projectPath(projectId, '/usage'), {
      query: { from, to, limit: 1 },
    })
    const of = (wanted: string | undefined): Spent => days.find(({ day }) => day === wanted) ?? NOTHING
    return { today: of(to), yesterday: of(from) }
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return null
    throw error
  }
}
