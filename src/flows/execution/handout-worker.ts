// One process's part in handed-out leaves. While it has room, it claims leaves whose functions it knows and calls them.
import type { Pool } from '../../db/pool.ts'
import type { AppFunction } from '../../kernel/app.ts'
import type { Log } from '../../kernel/log.ts'
import { type ClaimLoop, createClaimLoop } from '../../queue/claim-loop.ts'
import type { WhileIdle } from '../definition/function-context.ts'
import { callFunction } from './call-function.ts'
import {
  claimHandouts,
  claimSuspectHandout,
  freeStrayHandouts,
  type Handout,
  releaseSuspectHandout,
  settleHandout,
  stillWanted,
} from './handouts.ts'
import type { LeafSlots } from './leaf-slots.ts'

export interface HandoutWorker {
  poke(): void
  /** Tells the worker that there is room again: it claims leaves that it left for want of room. */
  onRoom(): void
  /** Cuts off the calls of leaves whose results nobody waits for any more. */
  withdraw(): Promise<void>
  leaveDeleted(): void
  /** Tells the worker that its leaves may belong to another process by now. */
  lapse(): void
  sweep: ClaimLoop<Handout>['sweep']
  /** Functions under way have this long to end. */
  stop(patienceMs: number): Promise<void>
}

export interface HandoutWorkerOptions {
  pool: Pool
  ownerId: () => string
  functions: ReadonlyMap<string, AppFunction>
  slots: LeafSlots
  deleted: () => ReadonlySet<string>
  log: Log
}

export function createHandoutWorker(options: HandoutWorkerOptions): HandoutWorker {
  const { pool, ownerId, functions, slots, deleted, log } = options
  const signals = new Map<Handout, AbortController>()
  const known = (): string[] => [...functions.keys()]
  const loop = createClaimLoop<Handout>({
    name: 'handed out leaves',
    slots,
    ownerId,
    claim: (ask) => claimHandouts(pool, { ...ask, leftOut: [...deleted()] }, known()),
    claimSuspect: (owner, lastProjectId) => claimSuspectHandout(pool, owner, lastProjectId, known()),
    releaseSuspect: (owner) => releaseSuspectHandout(pool, owner),
    work,
    freeStrays: (owner, inHand) => freeStrayHandouts(pool, owner, inHand),
    makesReady: () => false,
    log,
  })

  async function work(handout: Handout): Promise<boolean> {
    const { run_id: flowRunId, project_id: projectId, task_id: id, attempt, call } = handout
    const run = functions.get(handout.function)
    if (!run) return false
    const stop = new AbortController()
    signals.set(handout, stop)
    const worker = ownerId()
    try {
      const { leaf: node, argument, isEach } = call
      const leaf = { id, attempt, node, argument, isEach, ...keyedBy(handout) }
      const of = { flowRunId, projectId, log, whileIdle: createWhileIdle(projectId) }
      const outcome = await callFunction({ leaf, run, signal: stop.signal, ...of })
      if (!stop.signal.aborted) await settleHandout(pool, handout, outcome, worker)
      return !stop.signal.aborted
    } catch (error) {
      log.warn(
        { flow_run_id: flowRunId, task_id: id, err: error },
        'the result of a leaf could not be written; the leaf is done again',
      )
      return false
    } finally {
      signals.delete(handout)
    }
  }

  /** The loop gives the slot back when the leaf has ended, so the leaf takes the slot again before that. */
  function createWhileIdle(projectId: string): WhileIdle {
    return async (wait) => {
      slots.release(projectId)
      try {
        return await wait()
      } finally {
        slots.take(projectId)
      }
    }
  }

  const abortAll = (): void => {
    for (const stop of signals.values()) stop.abort()
  }

  return {
    poke: loop.poke,
    onRoom: loop.onRoom,
    withdraw: async () => {
      if (signals.size === 0) return
      const wanted = await stillWanted(pool, [...signals.keys()])
      for (const [handout, stop] of signals) if (!wanted.has(handout)) stop.abort()
    },
    leaveDeleted: () => {
      for (const [handout, stop] of signals) if (deleted().has(handout.project_id)) stop.abort()
    },
    lapse: abortAll,
    sweep: loop.sweep,
    stop: async (patienceMs) => {
      const hurry = setTimeout(abortAll, patienceMs)
      await loop.stop()
      clearTimeout(hurry)
      // Other processes need not wait for the lease to end.
      await freeStrayHandouts(pool, ownerId(), []).catch(() => undefined)
    },
  }
}

/** The keys of the calls are made from this scope. A leaf that an earlier release handed out keeps the key it had there. */
function keyedBy({ run_id: flowRunId, task_id: id, call }: Handout): { scope: string; key?: string } {
  if (call.scope !== undefined) return { scope: call.scope }
  const key = call.key ?? `${flowRunId}:${id}`
  return { scope: key, key }
}
