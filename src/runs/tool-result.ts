import type { RunEvent } from '../kernel/run-event.ts'
import type { PendingCall } from './run-state.ts'

/** The event that settles a call. */
export function toEvent(
  call: PendingCall,
  result: unknown,
  isError: boolean,
  startedAt = Date.now(),
  blocked: Extract<RunEvent, { kind: 'tool.completed' }>['data']['blocked'] = null,
): Extract<RunEvent, { kind: 'tool.completed' }> {
  return {
    kind: 'tool.completed',
    data: {
      step: call.step,
      call_id: call.id,
      name: call.name,
      result,
      is_error: isError,
      blocked,
      started_at: new Date(startedAt).toISOString(),
      duration: Math.max(0, Date.now() - startedAt),
    },
  }
}
