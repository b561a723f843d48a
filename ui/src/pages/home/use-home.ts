// Everything that the home page shows, read project by project, so that one slow project holds up no other.
import { useQueries } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
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
import { endedSince, goesOn, goesOnSince, isOnTop, stoppedSince, withoutShownByFlows } from './gather.ts'
import { createPace, type Pace } from './pace.ts'
import { paced } from './paced.ts'

/** The server takes 300 requests a second from an address by default, which other tabs and people may share. */
const PACE = { burst: 96, perSecond: 100 }

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
  /** Of which lists there may be more than was read. */
  hasMore: { waits: boolean; runs: boolean; fails: boolean }
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

/** The array of projects must stay the same one while the projects do: each change of it sets up all reads again. */
export function useHome(projects: readonly Project[], since: number): ProjectNews[] {
  const [pace] = useState(() => createPace(PACE))
  const queries = useMemo(() => queriesOf(projects, pace), [projects, pace])
  const waiting = useQueries({ queries: queries.waiting })
  const alerts = useQueries({ queries: queries.alerts })
  const failed = useQueries({ queries: queries.failed })
  const paused = useQueries({ queries: queries.paused })
  const running = useQueries({ queries: queries.running })
  const flowsFailed = useQueries({ queries: queries.flowsFailed })
  const flowsLate = useQueries({ queries: queries.flowsLate })
  const flows = useQueries({ queries: queries.flows })
  const storedFlows = useQueries({ queries: queries.storedFlows })
  const agents = useQueries({ queries: queries.agents })
  const short = useQueries({ queries: queries.short })
  const usage = useQueries({ queries: queries.usage })
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
      hasMore: {
        waits: waiting[at]?.data?.hasMore === true || goesOn(alerts[at]?.data, short[at]?.data),
        runs: goesOn(running[at]?.data, flows[at]?.data),
        fails: goesOnSince(since, ...[failed, paused, flowsFailed, flowsLate].map((each) => each[at]?.data)),
      },
      usage: usage[at]?.data ?? null,
      agentCount: agents[at]?.data?.items.length ?? null,
      hasMoreAgents: goesOn(agents[at]?.data),
      flowName: ({ flow_id, pattern }) => flowNames.get(flow_id ?? '') ?? pattern.replaceAll('_', ' '),
      isPending: reads.some((read) => read?.isPending),
      error: reads.find((read) => read?.error)?.error ?? null,
      retry: () => {
        for (const read of reads) if (read?.isError) void read.refetch()
      },
    }
  })
}

/** The reads of the projects, by kind. The reads of the first project are the first to start. */
function queriesOf(projects: readonly Project[], pace: Pace) {
  const all = projects.map(({ id }, rank) => ({ id, pace: { pace, rank } }))
  return {
    // One tab may show many projects, so the stream of changes alone has them read again.
    waiting: all.map((each) => ({ ...paced(waitingQuery(each.id), each.pace), refetchInterval: false as const })),
    alerts: all.map((each) => paced(openAlertsQuery(each.id), each.pace)),
    failed: all.map((each) => paced(homeRunsQuery(each.id, 'failed'), each.pace)),
    paused: all.map((each) => paced(homeRunsQuery(each.id, 'paused'), each.pace)),
    running: all.map((each) => paced(homeRunsQuery(each.id, 'running'), each.pace)),
    flowsFailed: all.map((each) => paced(homeFlowRunsQuery(each.id, 'failed'), each.pace)),
    flowsLate: all.map((each) => paced(homeFlowRunsQuery(each.id, 'timed_out'), each.pace)),
    flows: all.map((each) => paced(homeFlowRunsQuery(each.id, 'running'), each.pace)),
    storedFlows: all.map((each) => paced(storedFlowsQuery(each.id), each.pace)),
    agents: all.map((each) => paced(newestAgentsQuery(each.id), each.pace)),
    short: all.map((each) => paced(shortAgentsQuery(each.id), each.pace)),
    usage: all.map((each) => paced(twoDaysQuery(each.id), each.pace)),
  }
}
