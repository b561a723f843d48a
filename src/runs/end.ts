import type { RunChange } from '../journal/run-change.ts'
import type { PauseReason } from '../kernel/run.ts'
import type { RunEvent } from '../kernel/run-event.ts'
import type { PendingCall } from './run-state.ts'

/** The end or pause of a run: its last event, and the change of its row. Both are appended together. */
export interface End {
  event: RunEvent
  set: NonNullable<RunChange['set']>
}

export function completed(summary: string): End {
  return {
    event: { kind: 'run.completed', data: { summary } },
    set: { status: 'completed', summary, ended: true },
  }
}

export function failed(error_code: string, error_message: string, summary: string | null): End {
  return {
    event: { kind: 'run.failed', data: { error_code, error_message, summary } },
    set: { status: 'failed', error_code, error_message, summary, ended: true },
  }
}

export function cancelled(summary: string | null): End {
  return {
    event: { kind: 'run.cancelled', data: { summary } },
    set: { status: 'cancelled', pause_reason: null, summary, ended: true },
  }
}

/** This pause is an end too: only a resume goes on, and makes a new run. */
export function stopped(
  pause_reason: PauseReason,
  summary: string | null,
  { undecided, notBegun }: { undecided?: PendingCall; notBegun?: string[] } = {},
): End {
  const call = undecided && {
    call_id: undecided.id,
    call: { step: undecided.step, name: undecided.name, args: undecided.args },
  }
  return {
    event: {
      kind: 'run.paused',
      data: { pause_reason, summary, ...call, ...(notBegun ? { not_begun: notBegun } : {}) },
    },
    set: { status: 'paused', pause_reason, summary, ended: true },
  }
}

/** The same run goes on when somebody acts; until then it holds no slot. `seen`: the signals that the run knows of. */
export function waiting(pause_reason: 'human' | 'halted' | 'budget', notBegun: string[], seen: number): End {
  // A run that waits for a reservation of another call waits for `budget` as well, and is woken more often.
  const waits_for = pause_reason === 'budget' ? 'allocation' : pause_reason
  return {
    event: { kind: 'run.paused', data: { pause_reason, summary: null, not_begun: notBegun } },
    set: { status: 'paused', pause_reason, waits_for, release: true, seen_signals: seen },
  }
}
