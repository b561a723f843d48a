// Calls that were announced and have no result yet, and the events that change them.
import type { BlockedReason } from '../kernel/run.ts'
import type { CutOff, RunEvent } from '../kernel/run-event.ts'
import type { ToolEffect } from '../kernel/tool.ts'

/** A call that was announced and has no result yet. */
export interface PendingCall {
  id: string
  name: string
  args: unknown
  key: string
  /** Names this call among all calls of all runs. Rows that the call makes have ids from it. */
  ref: string
  effect: ToolEffect | 'run'
  /** The how-manieth such call it is in the history. */
  occurrence: number
  step: number
  attempt: number
  /** The time of the announcement, or of the approval, in milliseconds, by the database's clock. */
  announcedAt: number
  /**
   * True if an earlier owner died or left after the announcement, or an unsafe call was cut off: nobody knows whether
   * the call was made.
   */
  isUnknown: boolean
  /** The end of an unsafe call that was cut off; null if its owner died or left. */
  cutOff: CutOff | null
  /** True if this owner has made the call, or is making it. */
  hasBegun: boolean
  /** Set if a person decides about the call before it is made. `by`: the person who approved the call. */
  approval: { reasoning: string; isApproved: boolean; by: string | null } | null
  /** The result of a write that was made and that middleware has not seen yet. */
  written: { result: unknown; isError: boolean; blocked: BlockedReason | null; startedAt: number } | null
}

/** The calls of a run without a result, by id. */
export type PendingCalls = ReadonlyMap<string, PendingCall>

export function pendingCall(
  announced: Extract<RunEvent, { kind: 'tool.started' }>['data'],
  at: number,
  occurrence = 1,
): PendingCall {
  const { call_id: id, step, name, args, key, ref = key, effect } = announced
  const approval = announced.approval ? { ...announced.approval, isApproved: false, by: null } : null
  const noneYet = { attempt: 1, isUnknown: false, cutOff: null, hasBegun: false, approval, written: null }
  return { id, name, args, key, ref, effect, occurrence, step, announcedAt: at, ...noneYet }
}

/** From an approval on the call may have begun; a rejected call gets its result in the same commit. */
export function noteDecision(
  pending: PendingCalls,
  data: Extract<RunEvent, { kind: 'tool.decided' }>['data'],
  at: number,
): void {
  const call = pending.get(data.call_id)
  const approval = call?.approval
  if (!approval) return
  call.announcedAt = at
  approval.isApproved = data.decision === 'approved'
  approval.by = data.by
}

export function noteWritten(pending: PendingCalls, data: Extract<RunEvent, { kind: 'tool.written' }>['data']): void {
  const call = pending.get(data.call_id)
  if (!call) return
  const { result, is_error: isError, blocked, started_at: at } = data
  call.written = { result, isError, blocked, startedAt: Date.parse(at) }
}

/** True while nobody has decided about the call. Such a call has not begun. */
export const isHeld = ({ approval }: Pick<PendingCall, 'approval'>): boolean => approval?.isApproved === false

/** The outcomes of calls that the former owner had begun are unknown. */
export function doubtCalls(pending: PendingCalls, notBegun: readonly string[]): void {
  for (const call of pending.values()) {
    if (call.effect === 'run' || isHeld(call) || notBegun.includes(call.id)) continue
    call.attempt++
    call.isUnknown = true
  }
}
