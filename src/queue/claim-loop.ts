// One process's part in a queue of any work (queue-table.ts has the contract). A poke says that a row may be ready;
// a slot that becomes free claims again if rows were left behind; a sweep makes up for lost pokes, and finds suspects and
// rows that this process owns in the database but does not work on. At most one suspect has its turn.

import { type ClaimingOptions, createClaiming } from './claiming.ts'
import type { AtHand } from './queue-table.ts'
import { createSuspectTurn, type QueuedRow, type SuspectTurnOptions } from './suspect-turn.ts'

export interface ClaimLoopOptions<Claimed extends QueuedRow>
  extends ClaimingOptions<Claimed>,
    SuspectTurnOptions<Claimed> {
  /**
   * Works on a row until it ends, parks or is given up. Must not throw. Returns false if nothing could be written: the
   * database still names this process as the owner.
   */
  work: (claimed: Claimed) => Promise<boolean>
  /** Makes rows ready again that the owner has in the database but not among `inHand`. */
  freeStrays: (owner: string, inHand: readonly Claimed[]) => Promise<unknown>
  /** True if the end of this row may make another ready. Otherwise a claim follows only if rows were left behind. */
  makesReady: (claimed: Claimed) => boolean
  /** True while rows become this process's without a claim: they are not in hand yet, and must not count as strays. */
  isAdopting?: () => boolean
}

export interface ClaimLoop<Claimed> {
  /** Says that a row may want a slot. */
  poke(): void
  /** Called when shared slots are free again: claims if rows were left behind because no slot was free. */
  onRoom(): void
  active(): number
  inHand(): Iterable<Claimed>
  /** Takes a slot for a row that becomes this process's without a claim. Returns false if there is no room. */
  reserve(projectId: string): boolean
  /** Works on a row for which a slot was reserved. */
  adopt(claimed: Claimed): void
  /** Gives a reserved slot back, because its row did not become this process's. */
  unreserve(projectId: string): void
  /** `seen` is the result of a look at the queue. */
  sweep(seen: Pick<AtHand, 'has_ready' | 'has_suspects'>): Promise<void>
  close(): void
  stop(): Promise<void>
}

export function createClaimLoop<Claimed extends QueuedRow>(options: ClaimLoopOptions<Claimed>): ClaimLoop<Claimed> {
  const { slots } = options
  const active = new Map<Claimed, Promise<void>>()
  const suspects = createSuspectTurn(options)
  let isClosed = false
  /** True after a claim or a write was cut off: the database may name this process for rows it does not work on. */
  let mayHaveStrays = true
  let isFreeing = false
  const noteStrays = (): void => {
    mayHaveStrays = true
  }
  const claiming = createClaiming(options, { mayClaim: () => !isClosed && !isFreeing, begin, onFailure: noteStrays })
  const { poke } = claiming
  const onRoom = (): void => {
    if (claiming.isWanted()) poke()
  }

  return {
    poke,
    onRoom,
    active: () => active.size,
    inHand: () => active.keys(),
    reserve: (projectId) => {
      if (isClosed || isFreeing || !slots.hasRoomFor(projectId)) return false
      slots.take(projectId)
      return true
    },
    adopt: workOn,
    unreserve: (projectId) => {
      slots.release(projectId)
      onRoom()
    },
    sweep: async (seen) => {
      try {
        if (suspects.isHeld()) await suspects.passOn()
        if (mayHaveStrays && !claiming.isUnderWay() && !options.isAdopting?.()) await freeStrays()
        // No other claim runs meanwhile, so none counts on the slot that the suspect takes.
        if (seen.has_suspects && !isClosed && !claiming.isUnderWay() && slots.free() > 0)
          await claiming.inPlaceOfClaim(takeSuspect)
      } finally {
        if (seen.has_ready || claiming.isPoked()) poke()
      }
    },
    close: () => {
      isClosed = true
    },
    stop: async () => {
      isClosed = true
      await claiming.settled()
      while (active.size > 0) await Promise.race(active.values())
    },
  }

  async function takeSuspect(): Promise<void> {
    try {
      const claimed = await suspects.take()
      if (claimed) begin(claimed)
    } catch (error) {
      noteStrays()
      throw error
    }
  }

  function begin(claimed: Claimed): void {
    slots.take(claimed.project_id)
    workOn(claimed)
  }

  function workOn(claimed: Claimed): void {
    const done = options
      .work(claimed)
      .then((isSettled) => {
        if (!isSettled) noteStrays()
      })
      .finally(async () => {
        active.delete(claimed)
        slots.release(claimed.project_id)
        if (!isClosed && (claiming.isWanted() || options.makesReady(claimed))) poke()
        // If this fails, the next sweep passes the suspect on.
        if (suspects.has(claimed)) await suspects.passOn().catch(() => {})
      })
    active.set(claimed, done)
  }

  /** Nothing is claimed meanwhile: a row claimed now would not be in hand yet, and would be taken for a stray. */
  async function freeStrays(): Promise<void> {
    mayHaveStrays = false
    isFreeing = true
    try {
      await options.freeStrays(options.ownerId(), [...active.keys()])
    } catch (error) {
      noteStrays()
      throw error
    } finally {
      isFreeing = false
    }
  }
}
