// Claims rows into the free slots of this process while somebody pokes it, one claim at a time.

import type { Log } from '../kernel/log.ts'
import { type Dealt, type FairAsk, NO_PROJECT } from './queue-table.ts'
import type { Slots } from './slots.ts'

export interface ClaimingOptions<Claimed> {
  /** The name of the rows in the log, such as "runs". */
  name: string
  slots: Slots
  ownerId: () => string
  claim: (ask: Omit<FairAsk, 'leftOut'>) => Promise<Dealt<Claimed>>
  /** Called when more rows may want a slot than this process has, because other processes may have a free slot. */
  onFull?: () => void
  log: Log
}

interface ClaimingParts<Claimed> {
  mayClaim: () => boolean
  begin: (claimed: Claimed) => void
  /** A claim was cut off: the database may name this process for rows that it does not work on. */
  onFailure: () => void
}

/** After this many claims that found nothing to take, the rest waits for the next poke or sweep. */
const MOST_EMPTY_CLAIMS = 10

export function createClaiming<Claimed>(
  { name, slots, log, ...options }: ClaimingOptions<Claimed>,
  { mayClaim, begin, onFailure }: ClaimingParts<Claimed>,
) {
  let cursor = NO_PROJECT
  let underWay: Promise<void> | null = null
  let isPoked = false
  /** True if rows may be ready for which there was no room. */
  let hasLeftBehind = false

  const poke = (): void => {
    isPoked = true
    if (underWay || !mayClaim() || slots.free() === 0) return
    underWay = claimWhilePoked().finally(() => {
      underWay = null
      // A poke may have come between the last claim and this point.
      if (isPoked && slots.free() > 0) poke()
    })
  }

  return {
    poke,
    isPoked: (): boolean => isPoked,
    isWanted: (): boolean => hasLeftBehind || isPoked,
    isUnderWay: (): boolean => underWay !== null,
    /** Does other work in place of a claim: no claim is made meanwhile. */
    inPlaceOfClaim: async (work: () => Promise<void>): Promise<void> => {
      underWay = work().finally(() => {
        underWay = null
      })
      await underWay
    },
    settled: async (): Promise<void> => {
      await underWay
    },
  }

  async function claimWhilePoked(): Promise<void> {
    while (isPoked && mayClaim()) {
      isPoked = false
      try {
        await fill()
      } catch (error) {
        onFailure()
        log.warn({ err: error }, `${name} could not be claimed; trying again shortly`)
        return
      }
    }
  }

  async function fill(): Promise<void> {
    for (let emptyClaims = 0; emptyClaims < MOST_EMPTY_CLAIMS && mayClaim(); ) {
      // One turn of the event loop passes, so that slots that become free together are filled together.
      await new Promise(setImmediate)
      const free = slots.free()
      hasLeftBehind = free <= slots.kept
      if (free <= 0) return
      const ask = { owner: options.ownerId(), free, kept: slots.kept, cursor, ...slots.underWay() }
      const { claimed, cursor: next, mayHaveMore } = await options.claim(ask)
      cursor = next
      for (const one of claimed) begin(one)
      const left = free - claimed.length
      // Rows may be left that only other processes have slots for, or slots of this one that become free later.
      const isFull = left <= slots.kept
      if (isFull) {
        hasLeftBehind = true
        options.onFull?.()
      }
      // Rows that ended during the claim did not know of the rows that it leaves behind.
      const hasNewRoom = isFull && slots.free() > left
      if (!hasNewRoom && (left === 0 || !mayHaveMore)) return
      if (claimed.length === 0) emptyClaims++
    }
  }
}
