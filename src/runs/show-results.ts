import type { BlockedReason } from '../kernel/run.ts'
import type { RunEvent } from '../kernel/run-event.ts'
import { atOnce } from './at-once.ts'
import { afterTool, hasHook, hookError } from './middleware.ts'
import { type OwnedRun, remainingMs } from './owned-run.ts'
import type { PendingCall } from './pending-call.ts'
import { toEvent, withheld, withInheritedArgs } from './tool-result.ts'

/** The result of a call that the run itself carries out. It is kept elsewhere, and can be read again. */
export interface OwnResult {
  call: PendingCall
  result: unknown
  isError: boolean
  startedAt?: number
  blocked?: BlockedReason | null
  /** True if a person rejected the call, so that it was not carried out. */
  isRejected?: true
}

/**
 * The events that settle the calls, once middleware has seen the results. If the run is about to stop, the calls stay
 * open, and the next owner shows the results again.
 */
export async function showResults(owned: OwnedRun, results: readonly OwnResult[]): Promise<RunEvent[]> {
  if (results.length === 0) return []
  const settled = ({ call, startedAt, blocked }: OwnResult, result: unknown, isError: boolean): RunEvent =>
    withInheritedArgs(owned.run.id, call, toEvent(call, result, isError, startedAt, blocked))
  if (!hasHook(owned, 'afterTool')) return results.map((each) => settled(each, each.result, each.isError))
  const signal = owned.control.signalFor(remainingMs(owned), 'model')
  const events: RunEvent[][] = []
  await atOnce(results, async (each, index) => {
    const { call, result, isError, startedAt = Date.now() } = each
    const passed = await afterTool(owned, call, { result, isError }, signal.signal)
    if (passed.kind === 'passed') events[index] = [settled(each, passed.value.result, passed.value.isError)]
    else if (passed.kind === 'failed') events[index] = [settled(each, hookError(passed.message), true)]
    else if (signal.cause() === 'deadline') {
      events[index] = [each.isRejected ? settled(each, result, isError) : withheld(call, startedAt, 'timeout')]
    }
  })
  signal.end()
  return events.flat()
}
