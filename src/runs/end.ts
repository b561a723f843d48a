import type { RunChange } from '../journal/run-change.ts'
import type { PauseReason } from '../kernel/run.ts'
import type { RunEvent } from '../kernel/run-event.ts'
import { isSupervisor } from '../kernel/supervisor.ts'
import type { PendingCall } from './run-state.ts'
import type { Session } from './session.ts'

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

/** Middleware has failed, and the run fails with it. */
export const brokenOff = ({ state }: Pick<Session, 'state'>, message: string): End =>
  failed('MIDDLEWARE_ERROR', message, state.text || null)

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

/**
 * A model or a prompt library stays away. The run of a supervisor goes on when somebody says so, unless it belongs to an
 * eval, which nobody answers; every other run has ended, and a resume goes on where it stopped.
 */
export function unavailable({ run, state }: Pick<Session, 'run' | 'state'>, message: string): End {
  const text = state.text || null
  const isKept = isSupervisor(run.part) && run.trigger.eval_id === undefined
  const { event, set } = isKept ? waiting('unavailable', [], run.signals) : stopped('unavailable', text)
  return {
    event: {
      kind: 'run.paused',
      data: { ...event.data, pause_reason: 'unavailable', summary: text, error_message: message },
    },
    set: { ...set, error_code: 'UNAVAILABLE', error_message: message },
  }
}

/** The same run goes on when somebody acts; until then it holds no slot. `seen`: the signals that the run knows of. */
export function waiting(
  pause_reason: 'human' | 'halted' | 'budget' | 'unavailable',
  notBegun: string[],
  seen: number,
): End {
  // A run that waits for a reservation of another call waits for `budget` as well, and is woken more often.
  const waits_for = pause_reason === 'budget' ? 'allocation' : pause_reason === 'unavailable' ? 'human' : pause_reason
  return {
    event: { kind: 'run.paused', data: { pause_reason, summary: null, not_begun: notBegun } },
    set: { status: 'paused', pause_reason, waits_for, release: true, seen_signals: seen },
  }
}
