// The knowledge of this process about providers that are away: it asks its copy before each model call, and the database only when
// a provider fails, or answers while some wait for it.
import { setTimeout as delay } from 'node:timers/promises'
import type { Db, Pool } from '../db/pool.ts'
import { inTransaction } from '../db/transaction.ts'
import { newId } from '../kernel/id.ts'
import type { Log } from '../kernel/log.ts'
import type { ModelOutcome } from '../kernel/model-call.ts'
import {
  addWait,
  holdOutage,
  type ModelName,
  type NewWait,
  noteAnswer,
  noteBusy,
  noteOutage,
  type Outage,
  releaseDue,
  removeWait,
  takeReleased,
} from './provider-outages.ts'
import { wakeAbove } from './wake.ts'

export interface OutageWatch {
  /** True if the provider is known to be away: a new call joins those that wait. */
  isAway(model: ModelName): boolean
  /** The time for which the provider has asked to be left alone; 0 if it has not. */
  blockedForMs(model: ModelName): number
  /** A call has ended. An answer shows that the provider is back, and so does a refusal of one request. Never throws. */
  heard(model: ModelName, outcome: ModelOutcome): void
  /** A call was answered, or will never be made: the next ones may go. Never throws. */
  answered(model: ModelName): void
  /** A call failed, and its maker begins to wait. `withinMs`: an answer in this time shows that the provider is busy. */
  failed(
    model: ModelName,
    failure: { message: string; retryAfterMs: number | null; withinMs: number },
  ): Promise<'away' | 'busy'>
  /** Adds a wait, in the transaction that begins it. Null: the provider is not away (any more), and nobody is let go. */
  join(tx: Db, wait: NewWait): Promise<Outage | null>
  /** The run does not wait any more. turn: it was let go, or has waited for no turn · early: it still waited for its turn. */
  leave(runId: string): Promise<'turn' | 'early'>
  /**
   * Resolves when a call of this process is let go, or after this time. If the provider is not away, the call waits for
   * `busyMs`. The leaf that the call is part of waits meanwhile.
   */
  waitForTurn(wait: CallWait, options: TurnOptions): Promise<void>
  /** Takes over what the sweep has read, and lets some go whose turn it is. */
  sweep(outages: readonly Outage[]): Promise<void>
}

export type CallWait = Omit<NewWait, 'id' | 'workerId' | 'isReleased'>

export interface TurnOptions {
  atMostMs: number
  busyMs: number
  signal: AbortSignal
}

interface Known extends Outage {
  readAtMs: number
}

/** The interval at which this process asks whether its calls that wait were let go. */
const LOOK_EVERY_MS = 300

export function createOutageWatch({
  pool,
  ownerId,
  onReady,
  log,
}: {
  pool: Pool
  ownerId: () => string
  onReady: () => void
  log: Log
}): OutageWatch {
  let known = new Map<string, Known>()
  /** The instants at which providers last answered this process. */
  const answeredAt = new Map<string, number>()
  const turns = createTurns(pool, log)

  return { isAway, blockedForMs, heard, answered, failed, join, leave, waitForTurn, sweep }

  function isAway(model: ModelName): boolean {
    return known.get(keyOf(model))?.is_away ?? false
  }

  function blockedForMs(model: ModelName): number {
    const { blocked_for: blockedFor, readAtMs = 0 } = known.get(keyOf(model)) ?? {}
    return Math.max(0, (blockedFor ?? 0) + readAtMs - performance.now())
  }

  function heard(model: ModelName, outcome: ModelOutcome): void {
    const isRefused = outcome.kind === 'failed' && !outcome.isRetryable && outcome.reason !== 'quota'
    if (outcome.kind === 'answered' || isRefused) answered(model)
  }

  function answered(model: ModelName): void {
    answeredAt.set(keyOf(model), performance.now())
    if (!known.has(keyOf(model))) return
    noteAnswer(pool, model).then(
      ({ runs, isOver }) => {
        const outage = known.get(keyOf(model))
        if (isOver) known.delete(keyOf(model))
        else if (outage) outage.is_away = false
        if (runs > 0) onReady()
      },
      (error: unknown) => log.debug({ err: error }, 'a sweep will let runs go that wait for a provider'),
    )
  }

  async function failed(
    model: ModelName,
    { withinMs, ...failure }: { message: string; retryAfterMs: number | null; withinMs: number },
  ): Promise<'away' | 'busy'> {
    const answeredMs = answeredAt.get(keyOf(model))
    if (answeredMs !== undefined && performance.now() - answeredMs <= withinMs) {
      if (known.has(keyOf(model))) await noteBusy(pool, model)
      return 'busy'
    }
    note(await noteOutage(pool, model, failure))
    return 'away'
  }

  async function join(tx: Db, wait: NewWait): Promise<Outage | null> {
    const outage = await holdOutage(tx, wait)
    if (!outage?.is_away) {
      if (outage) note(outage)
      else known.delete(keyOf(wait))
      return null
    }
    await addWait(tx, wait)
    return outage
  }

  async function leave(runId: string): Promise<'turn' | 'early'> {
    return (await removeWait(pool, runId)) ? 'early' : 'turn'
  }

  async function waitForTurn(wait: CallWait, { atMostMs, busyMs, signal }: TurnOptions): Promise<void> {
    const own = { ...wait, id: newId(), workerId: ownerId() }
    const joined = await inTransaction(pool, (tx) => join(tx, own))
    if (!joined && busyMs === 0) return
    if (!joined) await addWait(pool, { ...own, isReleased: true })
    try {
      if (joined) await turns.wait(own.id, { atMostMs, signal })
      else await delay(Math.min(busyMs, atMostMs), undefined, { signal })
    } finally {
      await removeWait(pool, own.id)
      const { flowRunId } = wait
      if (flowRunId !== undefined && (await wakeAbove(pool, { flowRunId }))) onReady()
    }
  }

  async function sweep(outages: readonly Outage[]): Promise<void> {
    known = new Map(outages.map((outage) => [keyOf(nameOf(outage)), { ...outage, readAtMs: performance.now() }]))
    if (outages.some(({ next_in: nextIn }) => nextIn <= 0) && (await releaseDue(pool)) > 0) onReady()
  }

  function note(outage: Outage): void {
    known.set(keyOf(nameOf(outage)), { ...outage, readAtMs: performance.now() })
  }
}

/** A name has no line breaks. */
const keyOf = ({ provider, name }: ModelName): string => `${provider}\n${name}`
const nameOf = ({ provider, model: name }: Outage): ModelName => ({ provider, name })

/** The calls of this process that wait for their turn. One statement asks for all of them. */
function createTurns(pool: Pool, log: Log) {
  const waiting = new Map<string, () => void>()
  let isLookDue = false

  function look(): void {
    isLookDue = false
    takeReleased(pool, [...waiting.keys()])
      .then((ids) => {
        for (const id of ids) waiting.get(id)?.()
      })
      .catch((error: unknown) => log.debug({ err: error }, 'calls that wait for a provider will be looked at again'))
      .finally(lookLater)
  }

  function lookLater(): void {
    if (waiting.size === 0 || isLookDue) return
    isLookDue = true
    setTimeout(look, LOOK_EVERY_MS).unref()
  }

  return {
    /** Rejects if the signal fires. */
    wait: async (id: string, { atMostMs, signal }: { atMostMs: number; signal: AbortSignal }): Promise<void> => {
      signal.throwIfAborted()
      const { promise, resolve } = Promise.withResolvers<void>()
      const deadline = setTimeout(resolve, atMostMs)
      const onAbort = (): void => resolve()
      signal.addEventListener('abort', onAbort, { once: true })
      waiting.set(id, resolve)
      lookLater()
      try {
        await promise
        signal.throwIfAborted()
      } finally {
        waiting.delete(id)
        clearTimeout(deadline)
        signal.removeEventListener('abort', onAbort)
      }
    },
  }
}
