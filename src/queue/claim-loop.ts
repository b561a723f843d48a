// One process's part in a queue, whatever the work is (db/queue-table.ts has the contract). A poke says that something
// may be ready; a slot that frees up claims the next by itself; a sweep finds pokes that were lost, rows that are this
// process's in the database alone, and suspects. A suspect takes one slot beside everything else.
import { type AtHand, type Dealt, type FairAsk, NO_PROJECT } from '../db/queue-table.ts'
import type { Log } from '../kernel/log.ts'
import type { Slots } from './slots.ts'

export interface ClaimLoopOptions<Claimed extends { id: string; project_id: string }> {
  /** For the log: "runs". */
  name: string
  slots: Slots
  ownerId: () => string
  claim: (ask: Omit<FairAsk, 'leftOut'>) => Promise<Dealt<Claimed>>
  /** One suspect, where one waits and none is under way in the whole instance. */
  claimSuspect: (owner: string) => Promise<Claimed | null>
  /** Lets the next suspect be taken, where this process's has ended or progressed. True: this process has none now. */
  releaseSuspect: (owner: string) => Promise<boolean>
  /**
   * Works on it until it ends, parks or is given up. Must not throw. False: nothing could be written, and the row is
   * this process's in the database alone.
   */
  work: (claimed: Claimed) => Promise<boolean>
  /** Makes ready again whatever is this owner's in the database and not among these. */
  freeStrays: (owner: string, inHand: readonly Claimed[]) => Promise<unknown>
  /** More wanted a slot than there were: others may have one. */
  onFull?: () => void
  /** The end of one may have made another ready. Otherwise an end is followed by a claim where some were left behind. */
  endsMakeReady: boolean
  /** Some become this process's right now without a claim: they are in nobody's hands yet, and no strays. */
  isAdopting?: () => boolean
  log: Log
}

export interface ClaimLoop<Claimed> {
  /** Something may want a slot. */
  poke(): void
  /** Slots that are shared with others are free again: claims where some were left behind for want of them. */
  onRoom(): void
  active(): number
  inHand(): Iterable<Claimed>
  /** Whether one of this project may become this process's without a claim. */
  mayAdopt(projectId: string): boolean
  adopt(claimed: Claimed): void
  /** `seen` is what a look at the queue has found. */
  sweep(seen: Pick<AtHand, 'has_ready' | 'has_suspects'>): Promise<void>
  /** Claims nothing any more. */
  close(): void
  /** Resolves when every slot is free. */
  stop(): Promise<void>
}

/** Projects that have their share are passed over; so many claims in a row may find only such. */
const MOST_EMPTY_CLAIMS = 10

export function createClaimLoop<Claimed extends { id: string; project_id: string }>(
  options: ClaimLoopOptions<Claimed>,
): ClaimLoop<Claimed> {
  const { slots, log, name } = options
  const active = new Map<Claimed, Promise<void>>()
  let cursor = NO_PROJECT
  let isClosed = false
  let claiming: Promise<void> | null = null
  let isPokedAgain = false
  /** A claim or a write was cut off: rows may be ours in the database and in nobody's hands. */
  let mayHaveStrays = true
  let isFreeing = false
  let suspect: Claimed | null = null
  /** The database says that the suspect under way is this process's. */
  let holdsSuspect = false
  /** Some may be ready that there was no room for. */
  let hasLeftBehind = false

  const poke = (): void => {
    isPokedAgain = true
    if (claiming || isClosed || isFreeing || slots.free() === 0) return
    claiming = claimWhilePoked().finally(() => {
      claiming = null
      // A poke may have come after the last look and before this.
      if (isPokedAgain && slots.free() > 0) poke()
    })
  }

  return {
    poke,
    onRoom: () => {
      if (hasLeftBehind || isPokedAgain) poke()
    },
    active: () => active.size,
    inHand: () => active.keys(),
    mayAdopt: (projectId) => !isClosed && !isFreeing && slots.hasRoomFor(projectId),
    adopt: begin,
    sweep: async (seen) => {
      if (holdsSuspect) await passSuspectOn()
      if (mayHaveStrays && !claiming && !options.isAdopting?.()) await freeStrays()
      if (seen.has_suspects && !isClosed && !claiming && slots.free() > 0) await takeSuspect()
      if (seen.has_ready || isPokedAgain) poke()
    },
    close: () => {
      isClosed = true
    },
    stop: async () => {
      isClosed = true
      await claiming
      while (active.size > 0) await Promise.race(active.values())
    },
  }

  async function claimWhilePoked(): Promise<void> {
    while (isPokedAgain && !isClosed && !isFreeing) {
      isPokedAgain = false
      try {
        await fill()
      } catch (error) {
        mayHaveStrays = true
        log.warn({ err: error }, `${name} could not be claimed; trying again shortly`)
        return
      }
    }
  }

  async function fill(): Promise<void> {
    for (let emptyClaims = 0; emptyClaims < MOST_EMPTY_CLAIMS && !isClosed && !isFreeing; ) {
      // One turn of the loop: slots that become free together are filled together.
      await new Promise(setImmediate)
      const free = slots.free()
      hasLeftBehind = free <= slots.kept
      if (free <= 0) return
      const ask = { owner: options.ownerId(), free, kept: slots.kept, cursor, ...slots.underWay() }
      const { claimed, cursor: next, mayHaveMore } = await options.claim(ask)
      cursor = next
      for (const one of claimed) begin(one)
      if (slots.free() <= slots.kept) hasLeftBehind = true
      if (claimed.length === free) return options.onFull?.()
      if (claimed.length === 0) {
        emptyClaims++
        if (!mayHaveMore) return
      }
    }
  }

  async function takeSuspect(): Promise<void> {
    if (holdsSuspect) return
    const claimed = await options.claimSuspect(options.ownerId())
    if (!claimed) return
    log.warn({ id: claimed.id }, `one of the ${name} that took two processes with it is tried again`)
    suspect = claimed
    holdsSuspect = true
    begin(claimed)
  }

  function begin(claimed: Claimed): void {
    slots.take(claimed.project_id)
    const done = options
      .work(claimed)
      .then((isSettled) => {
        if (!isSettled) mayHaveStrays = true
      })
      .finally(async () => {
        active.delete(claimed)
        slots.release(claimed.project_id)
        if (!isClosed && (options.endsMakeReady || hasLeftBehind)) poke()
        // The next sweep does it where this fails.
        if (claimed === suspect) await passSuspectOn().catch(() => {})
      })
    active.set(claimed, done)
  }

  async function passSuspectOn(): Promise<void> {
    if (!(await options.releaseSuspect(options.ownerId()))) return
    holdsSuspect = false
    suspect = null
  }

  /** Nothing is claimed meanwhile: it would not be in hand, and be taken for a stray. */
  async function freeStrays(): Promise<void> {
    mayHaveStrays = false
    isFreeing = true
    try {
      await options.freeStrays(options.ownerId(), [...active.keys()])
    } catch (error) {
      mayHaveStrays = true
      throw error
    } finally {
      isFreeing = false
    }
  }
}
