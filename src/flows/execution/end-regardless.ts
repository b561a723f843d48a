import { MOST_CRASHES } from '../../queue/queue-table.ts'
import type { ClaimedFlow } from './claim.ts'
import { logEnd } from './end.ts'
import { appendToFlow, type FlowDeps } from './owned-flow.ts'
import { cancelAllRuns } from './stop-leaves.ts'
import { isLate, type Timed } from './watch-leaves.ts'

/** Ends a flow run that cannot go on, if its end was asked for, its time is up, or it failed in our code too often. */
export async function endRegardless(deps: FlowDeps, flow: ClaimedFlow): Promise<boolean> {
  const ended = endAsked(deps, flow)
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

type EndingFlow = Timed & Pick<ClaimedFlow, 'cancel_requested_at' | 'crashes' | 'within'>
type StoppedEnd = { status: 'cancelled' | 'timed_out' | 'failed'; error: string | null }

/** The end of a flow run that failed in our own code, or null if it is to be tried again. */
export function endAsked(deps: Pick<FlowDeps, 'isHalted'>, flow: EndingFlow): StoppedEnd | null {
  const { cancel_requested_at: cancelledAt, crashes, within } = flow
  if (cancelledAt !== null) return { status: 'cancelled', error: null }
  // A flow run that may wait for tokens may have more time; its next owner finds out.
  if (isLate(deps, flow) && !within?.payers.length)
    return { status: 'timed_out', error: 'The time of the flow was up.' }
  return crashes + 1 < MOST_CRASHES ? null : { status: 'failed', error: crashLoop(crashes + 1) }
}

export const crashLoop = (crashes: number): string =>
  `CRASH_LOOP: the process that worked on this flow died ${crashes} times; the flow run is not tried again.`
