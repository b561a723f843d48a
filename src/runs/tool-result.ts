import type { CutReason, RunEvent } from '../kernel/run-event.ts'
import type { PendingCall } from './pending-call.ts'

type Completed = Extract<RunEvent, { kind: 'tool.completed' }>
type Settled = Pick<PendingCall, 'id' | 'name' | 'step'>

export function toEvent(
  call: Settled,
  result: unknown,
  isError: boolean,
  startedAt = Date.now(),
  blocked: Completed['data']['blocked'] = null,
): Completed {
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

/** The call has no result: people decide about it. `said` are the tool's own words if the connection broke. */
export function cutOff(call: Settled, reason: CutReason, startedAt: number, said: { result: unknown }): RunEvent {
  const { step, id: call_id, name } = call
  const { error } = said.result as { error?: string } // the result of a call that failed is {error}
  return {
    kind: 'tool.cut_off',
    data: {
      ...{ step, call_id, name, reason },
      started_at: new Date(startedAt).toISOString(),
      duration: Math.max(0, Date.now() - startedAt),
      ...(reason === 'connection' && error !== undefined ? { message: error } : {}),
    },
  }
}

export const toolGone = (call: Settled): Completed =>
  toEvent(call, { error: `There is no tool called "${call.name}" any more.` }, true)

/** `startedAt` is null for a call that was not made. */
export function timedOut(call: Settled, startedAt: number | null): Completed {
  const error = 'The time of the run was up before this call answered.'
  const event = toEvent(call, { error }, true, startedAt ?? Date.now(), 'timeout')
  return startedAt === null ? event : unanswered(event)
}

/** The step of a call that the run inherited stands in another journal, so its arguments stand with its result. */
export function withInheritedArgs(runId: string, { ref, args }: PendingCall, event: RunEvent): RunEvent {
  if (event.kind !== 'tool.completed' || ref.startsWith(runId)) return event
  return { kind: event.kind, data: { ...event.data, args } }
}

/** The call was given up before it answered, and may have taken effect. */
export const unanswered = ({ kind, data }: Completed): Completed => ({ kind, data: { ...data, is_unanswered: true } })

/** The call has answered, but the run stops before the middleware has seen the answer: nobody may see it. */
export function withheld(call: Settled, startedAt: number, blocked: Completed['data']['blocked'] = null): Completed {
  const error = 'This call was made. Its result was not kept: the run was stopped before the middleware had seen it.'
  const { kind, data } = toEvent(call, { error }, true, startedAt, blocked)
  return { kind, data: { ...data, is_withheld: true } }
}
