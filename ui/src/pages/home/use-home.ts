// Everything that the home page shows, read project by project, so that one slow project holds up no other.
import { useQueries } from '@tanstack/react-query'
import type { Agent } from '../../../../src/kernel/agent.ts'
import type { FlowRun } from '../../../../src/kernel/flow-run.ts'
import type { Project } from '../../../../src/kernel/project.ts'
import type { Run } from '../../../../src/kernel/run.ts'
import type { Task } from '../../../../src/kernel/task.ts'
import { storedFlowsQuery } from '../../api/flows.ts'
import {
  homeFlowRunsQuery,
  homeRunsQuery,
  type OpenAlert,
  openAlertsQuery,
  shortAgentsQuery,
  type TwoDays,
  twoDaysQuery,
} from '../../api/home.ts'
import { waitingQuery } from '../../api/inbox.ts'
import { newestAgentsQuery } from '../../api/queries.ts'
import { endedSince, isOnTop, stoppedSince, withoutShownByFlows } from './gather.ts'

export interface ProjectNews {
  project: Project
  waiting: Task[]
  alerts: OpenAlert[]
  /** Agents whose tokens run short. */
  shortAgents: Agent[]
  failedRuns: Run[]
  failedFlows: FlowRun[]
  runs: Run[]
  flows: FlowRun[]
  /** Null where it is not known. */
  usage: TwoDays | null
  /** Null until it is known. */
  agentCount: number | null
  /** True if there are more agents than were counted. */
  hasMoreAgents: boolean
  flowName: (run: FlowRun) => string
  isPending: boolean
  error: unknown
  retry: () => void
}

export function useHome(projects: readonly Project[], since: number): ProjectNews[] {
  const ids = projects.map(({ id }) => id)
  // One tab may show many projects, so the stream of changes alone has them read again.
  const waiting = useQueries({ queries: ids.map((id) => ({ ...waitingQuery(id), refetchInterval: false as const })) })
  const alerts = useQueries({ queries: ids.map(openAlertsQuery) })
  const failed = useQueries({ queries: ids.map((id) => homeRunsQuery(id, 'failed')) })
  const paused = useQueries({ queries: ids.map((id) => homeRunsQuery(id, 'paused')) })
  const running = useQueries({ queries: ids.map((id) => homeRunsQuery(id, 'running')) })
  const flowsFailed = useQueries({ queries: ids.map((id) => homeFlowRunsQuery(id, 'failed')) })
  const flowsLate = useQueries({ queries: ids.map((id) => homeFlowRunsQuery(id, 'timed_out')) })
  const flows = useQueries({ queries: ids.map((id) => homeFlowRunsQuery(id, 'running')) })
  const storedFlows = useQueries({ queries: ids.map(storedFlowsQuery) })
  const agents = useQueries({ queries: ids.map(newestAgentsQuery) })
  const short = useQueries({ queries: ids.map(shortAgentsQuery) })
  const usage = useQueries({ queries: ids.map(twoDaysQuery) })
  return projects.map((project, at) => {
    const reads = [waiting, failed, paused, running, flowsFailed, flowsLate, flows, agents].map((each) => each[at])
    const flowNames = new Map(storedFlows[at]?.data?.map(({ id, name }) => [id, name]))
    const stopped = [...(failed[at]?.data?.items ?? []), ...(paused[at]?.data?.items ?? [])].filter(
      (run) => run.resumed_as === null,
    )
    const stoppedFlows = [...(flowsFailed[at]?.data?.items ?? []), ...(flowsLate[at]?.data?.items ?? [])]
    const failedFlows = stoppedFlows.filter((run) => endedSince(run, since))
    const runningFlows = flows[at]?.data?.items ?? []
    return {
      project,
      waiting: waiting[at]?.data?.items ?? [],
      alerts: alerts[at]?.data?.items ?? [],
      shortAgents: short[at]?.data?.items ?? [],
      failedRuns: withoutShownByFlows(stopped, failedFlows).filter((run) => isOnTop(run) && stoppedSince(run, since)),
      failedFlows,
      runs: withoutShownByFlows(running[at]?.data?.items ?? [], runningFlows).filter(isOnTop),
      flows: runningFlows,
      usage: usage[at]?.data ?? null,
      agentCount: agents[at]?.data?.items.length ?? null,
      hasMoreAgents: typeof agents[at]?.data?.next_cursor === 'string',
      flowName: ({ flow_id, pattern }) => flowNames.get(flow_id ?? '') ?? pattern.replaceAll('_', ' '),
      isPending: reads.some((read) => read?.isPending),
      error: reads.find((read) => read?.error)?.error ?? null,
      retry: () => {
        for (const read of reads) if (read?.isError) void read.refetch()
      },
    }
  })
}
