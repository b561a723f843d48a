// A run whose provider stays away waits: it holds no slot, and the same run continues by itself. If the provider is away
// for all (journal/provider-outages.ts), the run sleeps until it is let go. If the provider answers others meanwhile, it
// is only busy, and the run tries again after a wait of its own.
import type { RunChange } from '../journal/run-change.ts'
import { cutText } from '../kernel/cut-text.ts'
import { defined } from '../kernel/defined.ts'
import { fault } from '../kernel/fault.ts'
import type { Limit } from '../kernel/guards.ts'
import { triedOften } from '../kernel/retry.ts'
import type { RunEvent } from '../kernel/run-event.ts'
import { isBehindRequest } from './behind-request.ts'
import { type End, leave, notBegun, runFailed, stopped } from './end.ts'
import { appendWritten, chosenModel, databaseNow, type OwnedRun, withChange } from './owned-run.ts'

/** An eval compares what can be had now. */
export const mayWait = ({ run }: Pick<OwnedRun, 'run'>): boolean =>
  !isBehindRequest(run) && run.trigger.eval_id === undefined

/** The time since the first failed try of the call that is due. */
export const triedForMs = (owned: OwnedRun): number =>
  owned.state.firstFailedAt === null ? 0 : Math.max(0, databaseNow(owned) - owned.state.firstFailedAt)

export interface Wait {
  /** The events of the failed try, and what it has used. */
  events: readonly RunEvent[]
  change: RunChange
  message: string
  retryAfterMs: number | null
  /** The wait of a run whose provider is only busy. */
  waitMs: number
}

/** Called before each model call. null: the call may be made. `limit`: the limit that the run has reached before. */
export async function checkProvider(owned: OwnedRun, limit: Limit | null): Promise<'again' | 'left' | null> {
  const { run, state, settings, deps, woken } = owned
  if (!mayWait(owned)) return null
  const model = chosenModel(owned)
  const isAway = deps.outages.isAway(model)
  if (woken === null) return isAway && settings.model_patience > 0 ? joinWaiting(owned) : null
  const isLetGo = woken === 'turn' && !state.waitsAlone
  const isTold = run.signals > state.waitSignals
  if (isLetGo || isTold) return null
  const blockedMs = Math.max(state.notBeforeAt - databaseNow(owned), deps.outages.blockedForMs(model))
  const isPatient = triedForMs(owned) < settings.model_patience
  if (blockedMs <= 0) return woken === 'early' && isAway && isPatient ? joinWaiting(owned) : null
  if (isPatient) return waitOn(owned, blockedMs)
  if (limit) return leave(owned, stopped(limit, state.text || null))
  const message = `${model.provider} asked for a longer wait than model_patience allows.`
  const often = state.attempts > 0 ? triedOften(state.attempts - 1, triedForMs(owned)) : ''
  return leave(owned, runFailed('MODEL_ERROR', `${message}${often}`, state.text || null))
}

/** The provider is known to be away: the run waits without a try. */
async function joinWaiting(owned: OwnedRun): Promise<'again' | 'left'> {
  const isParked = await park(owned, null)
  return isParked ? 'left' : 'again'
}

/** The run was woken within the wait that the provider asked for, because the patience of its project was changed. */
async function waitOn(owned: OwnedRun, waitMs: number): Promise<'left'> {
  const isParked = await park(owned, null)
  if (!isParked) await park(owned, { ...NO_TRY, message: owned.state.waitMessage, waitMs, how: 'busy' })
  return 'left'
}

const NO_TRY = { events: [], change: {}, retryAfterMs: null } as const

/** A try has failed, and quick retries would not help. */
export async function waitForProvider(owned: OwnedRun, wait: Wait): Promise<'left'> {
  const { state, deps } = owned
  const { message, retryAfterMs } = wait
  // An answer since the last wait, or within the quick retries, shows that the provider is not away.
  const since = state.lastWaitAt ?? state.firstFailedAt
  const withinMs = since === null ? 0 : databaseNow(owned) - since
  const how = await deps.outages.failed(chosenModel(owned), { message, retryAfterMs, withinMs })
  await park(owned, { ...wait, how })
  return 'left'
}

class NotAway extends Error {}

/**
 * The outage is held while the run parks: its end is committed before, and the run does not sleep for it, or after, and
 * finds the run. Returns false if a run without a failed try need not wait.
 */
async function park(owned: OwnedRun, failed: (Wait & { how: 'away' | 'busy' }) | null): Promise<boolean> {
  const { run, state, settings, deps } = owned
  const { provider, name } = chosenModel(owned)
  const waits = state.providerWaits + (failed && failed.events.length > 0 ? 1 : 0)
  const patienceMs = Math.max(1, settings.model_patience - triedForMs(owned))
  try {
    await appendWritten(owned, async (tx) => {
      const wait = { id: run.id, projectId: run.project_id, provider, name, waits }
      const outage = failed?.how === 'busy' ? null : await deps.outages.join(tx, wait)
      if (!outage && !failed) throw new NotAway()
      const readyInMs = outage ? patienceMs : Math.min(failed?.waitMs ?? 0, patienceMs)
      const message = cutText(failed?.message ?? outage?.message ?? '', MAX_MESSAGE, '…')
      const own = defined({
        wait: outage ? undefined : Math.round(readyInMs),
        retry_after: failed?.retryAfterMs ?? undefined,
      })
      const provider_wait = { provider, model: name, waits, signals: run.signals, ...own }
      const { event, set } = waitingForProvider(owned, { message, readyInMs, provider_wait })
      return { events: [...(failed?.events ?? []), event], change: withChange(failed?.change ?? {}, set) }
    })
  } catch (error) {
    if (error instanceof NotAway) return false
    throw error
  }
  await fault('park.after_commit')
  return true
}

function waitingForProvider(
  { run, state }: OwnedRun,
  {
    message,
    readyInMs,
    provider_wait,
  }: { message: string; readyInMs: number; provider_wait: NonNullable<PauseData['provider_wait']> },
): End {
  const pause = { pause_reason: 'unavailable', summary: null } as const
  return {
    event: {
      kind: 'run.paused',
      data: { ...pause, not_begun: notBegun(state), error_message: message, provider_wait },
    },
    set: {
      status: 'paused',
      pause_reason: 'unavailable',
      waits_for: 'provider',
      waiting_for: `provider ${provider_wait.provider}`,
      wait_message: message,
      release: true,
      seen_signals: run.signals,
      ready_in_ms: readyInMs,
    },
  }
}

type PauseData = Extract<RunEvent, { kind: 'run.paused' }>['data']

const MAX_MESSAGE = 500

/** The end of a sentence about a call that failed for good. */
export const tried = (owned: OwnedRun): string => triedOften(owned.state.attempts, triedForMs(owned))
