// The ends and pauses of a run, and the way out of the hands of its owner (`leave`).
import type { Db } from '../db/pool.ts'
import type { Journal } from '../journal/journal.ts'
import type { RunChange } from '../journal/run-change.ts'
import { fault } from '../kernel/fault.ts'
import type { PauseReason } from '../kernel/run.ts'
import type { RunEvent } from '../kernel/run-event.ts'
import { isSupervisor } from '../kernel/supervisor.ts'
import { closeCalls } from '../tasks/close-questions.ts'
import { append, appendWritten, type OwnedRun, withChange } from './owned-run.ts'
import { isHeld, type PendingCall } from './pending-call.ts'
import type { RunState } from './run-state.ts'

export interface End {
  event: RunEvent
  set: NonNullable<RunChange['set']>
}

export function runCompleted(summary: string): End {
  return {
    event: { kind: 'run.completed', data: { summary } },
    set: { status: 'completed', summary, ended: true },
  }
}

export function runFailed(error_code: string, error_message: string, summary: string | null): End {
  return {
    event: { kind: 'run.failed', data: { error_code, error_message, summary } },
    set: { status: 'failed', error_code, error_message, summary, ended: true },
  }
}

export const outOfTokens = (summary: string | null): End =>
  runFailed('BUDGET_EXHAUSTED', 'The agent has used up its token allocation.', summary)

export const brokenOff = ({ state }: Pick<OwnedRun, 'state'>, message: string): End =>
  runFailed('MIDDLEWARE_ERROR', message, state.text || null)

export function cancelled(summary: string | null): End {
  return {
    event: { kind: 'run.cancelled', data: { summary } },
    set: { status: 'cancelled', pause_reason: null, summary, ended: true },
  }
}

/** This pause is an end, too: only a resume continues the work, in a new run. */
export function stopped(
  pause_reason: PauseReason,
  summary: string | null,
  { undecided = [], notBegun }: { undecided?: readonly PendingCall[]; notBegun?: string[] } = {},
): End {
  const calls = undecided.map(({ id: call_id, step, name, args, announcedAt, cutOff }) => {
    const times = cutOff ?? { started_at: new Date(announcedAt).toISOString(), duration: 0 }
    return { call_id, step, name, args, started_at: times.started_at, duration: times.duration }
  })
  const [first] = calls
  const named = first && {
    call_id: first.call_id,
    call: { step: first.step, name: first.name, args: first.args },
    calls,
  }
  return {
    event: {
      kind: 'run.paused',
      data: { pause_reason, summary, ...named, ...(notBegun ? { not_begun: notBegun } : {}) },
    },
    set: { status: 'paused', pause_reason, summary, ended: true },
  }
}

/**
 * Used when a model or a prompt library stays away. A supervisor's run goes on when somebody asks for it, unless it
 * belongs to an eval. Every other run has ended, and a resume goes on at that point.
 */
export function runUnavailable({ run, state }: Pick<OwnedRun, 'run' | 'state'>, message: string): End {
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

/** The awaited thing, in the words of `Run.waiting_for`. */
const AWAITED: Partial<Record<PauseReason, string>> = { human: 'person', budget: 'tokens' }

/** The same run goes on when somebody acts, and holds no slot until then. `seen`: the signals that the run knows of. */
export function waiting(
  pause_reason: 'human' | 'halted' | 'budget' | 'unavailable',
  notBegun: string[],
  seen: number,
): End {
  // A run that waits for a reservation of another call waits for `budget` as well, and is woken more often.
  const waits_for = pause_reason === 'budget' ? 'allocation' : pause_reason === 'unavailable' ? 'human' : pause_reason
  const waitingFor = AWAITED[pause_reason]
  return {
    event: { kind: 'run.paused', data: { pause_reason, summary: null, not_begun: notBegun } },
    set: {
      status: 'paused',
      pause_reason,
      waits_for,
      release: true,
      seen_signals: seen,
      ...(waitingFor === undefined ? {} : { waiting_for: waitingFor }),
    },
  }
}

/** Writes the last events of this owner. */
export async function leave(owned: OwnedRun, end: End, events: readonly RunEvent[] = [], change = {}): Promise<'left'> {
  const last = { events: [...events, withNotBegun(owned, end.event)], change: withChange(change, end.set) }
  if (end.set.ended && [...owned.state.pending.values()].some(isHeld)) {
    await appendWritten(owned, async (tx) => {
      await closeCalls(tx, [owned.run.id])
      return last
    })
  } else await append(owned, last.events, last.change)
  await fault('final.after_commit')
  return 'left'
}

/** A run that continues this one must know which of the announced calls were never made. */
function withNotBegun({ state }: OwnedRun, event: RunEvent): RunEvent {
  const unbegun = notBegun(state)
  if (unbegun.length === 0) return event
  if (event.kind !== 'run.failed' && event.kind !== 'run.cancelled') return event
  return { ...event, data: { ...event.data, not_begun: unbegun } } as RunEvent // the spread keeps the kind's own data
}

/** The announced calls that no owner has begun. */
export const notBegun = (state: RunState): string[] =>
  [...state.pending.values()].filter((call) => !call.hasBegun && !call.isUnknown).map((call) => call.id)

/** Ends a run that has no owner, in a transaction that holds the run's row. */
export async function endUnowned(
  tx: Db,
  journal: Journal,
  { id: runId, ancestors }: { id: string; ancestors: readonly string[] },
  end: End,
): Promise<void> {
  await closeCalls(tx, [runId])
  await journal.appendIn(tx, { runId, fence: null, events: [end.event], change: { set: end.set }, ancestors })
}
