import { MOST_CRASHES } from '../../queue/queue-table.ts'
import type { ClaimedFlow } from './claim.ts'
import { logEnd } from './end.ts'
import { appendToFlow, type FlowDeps } from './owned-flow.ts'
import { cancelAllRuns } from './stop-leaves.ts'

/** Ends a flow run that cannot go on, if its end was asked for, its time is up, or it failed in our code too often. */
export async function endRegardless(deps: FlowDeps, flow: ClaimedFlow): Promise<boolean> {
  const ended = endAsked(flow)
  if (!ended) return false
  const { status, error } = ended
  try {
    await appendToFlow({ deps, flow }, [{ kind: `flow.${status}` as const, data: { error } }], {
      status,
      error,
      ended: true,
    })
    logEnd(deps.log, flow, status)
    await cancelAllRuns(deps, flow)
    return true
  } catch (failure) {
    deps.log.error({ flow_run_id: flow.id, err: failure }, 'a flow run could not be ended')
    return false
  }
}

type StoppedEnd = { status: 'cancelled' | 'timed_out' | 'failed'; error: string | null }

function endAsked({ cancel_requested_at, age, timeout, crashes }: ClaimedFlow): StoppedEnd | null {
  if (cancel_requested_at !== null) return { status: 'cancelled', error: null }
  if (age >= timeout) return { status: 'timed_out', error: 'The time of the flow was up.' }
  return crashes + 1 < MOST_CRASHES ? null : { status: 'failed', error: crashLoop(crashes + 1) }
}

export const crashLoop = (crashes: number): string =>
  `CRASH_LOOP: the process that worked on this flow died ${crashes} times; the flow run is not tried again.`
