// One process's part in a queue of any work (db/queue-table.ts has the contract). A poke says that a row may be ready;
// a slot that becomes free claims again if rows were left behind; a sweep makes up for lost pokes, and finds suspects and
// rows that this process owns in the database but does not work on. At most one suspect has its turn.
import { type AtHand, type Dealt, type FairAsk, NO_PROJECT } from '../db/queue-table.ts'
import type { Log } from '../kernel/log.ts'
import type { Slots } from './slots.ts'

export interface ClaimLoopOptions<Claimed extends { id: string; project_id: string }> {
  /** The name of the rows in the log, such as "runs". */
  name: string
  slots: Slots
  ownerId: () => string
  claim: (ask: Omit<FairAsk, 'leftOut'>) => Promise<Dealt<Claimed>>
  /**
   * Claims one suspect if one waits and none has its turn in the whole instance. `lastProjectId` had the last turn here.
   */
  claimSuspect: (owner: string, lastProjectId: string) => Promise<Claimed | null>
  /**
   * Lets the next suspect be taken if this process's has ended or progressed, or if its turn is over. Returns true if
   * this process has none.
   */
  releaseSuspect: (owner: string) => Promise<boolean>
  /**
   * Works on a row until the row ends, parks or is given up. Must not throw. Returns false if nothing could be written:
   * the database still names this process as the owner.
   */
  work: (claimed: Claimed) => Promise<boolean>
  /** Makes rows ready again that the owner has in the database but not among `inHand`. */
  freeStrays: (owner: string, inHand: readonly Claimed[]) => Promise<unknown>
  /** Called when more rows may want a slot than there were, because other processes may have a free one. */
  onFull?: () => void
  /** True if the end of this row may make another ready. Otherwise a claim follows it only if rows were left behind. */
  makesReady: (claimed: Claimed) => boolean
  /** True while rows become this process's without a claim: they are not in hand yet, and must not count as strays. */
  isAdopting?: () => boolean
  log: Log
}

export interface ClaimLoop<Claimed> {
  /** Says that a row may want a slot. */
  poke(): void
  /** Called when shared slots are free again: claims if rows were left behind for want of them. */
  onRoom(): void
  active(): number
  inHand(): Iterable<Claimed>
  /** Takes a slot for a row of this project that becomes this process's without a claim. False if it has no room. */
  reserve(projectId: string): boolean
  /** Works on a row for which a slot was reserved. */
  adopt(claimed: Claimed): void
  /** The row for which a slot was reserved is not this process's. */
  unreserve(projectId: string): void
  /** `seen` is the result of a look at the queue. */
  sweep(seen: Pick<AtHand, 'has_ready' | 'has_suspects'>): Promise<void>
  /** Ends all claims. */
  close(): void
  /** Resolves when every slot is free. */
  stop(): Promise<void>
}

/** After this many claims that found nothing to take, the rest waits for the next poke or sweep. */
const MOST_EMPTY_CLAIMS = 10

export function createClaimLoop<Claimed extends { id: string; project_id: string }>(
  options: ClaimLoopOptions<Claimed>,
): ClaimLoop<Claimed> {
  const { slots, log, name } = options
  const active = new Map<Claimed, Promise<void>>()
  let cursor = NO_PROJECT
  let isClosed = false
  let claiming: Promise<void> | null = null
  let isPoked = false
  /** True after a claim or a write was cut off: the database may name this process for rows it does not work on. */
  let mayHaveStrays = true
  let isFreeing = false
  let suspect: Claimed | null = null
  let lastSuspectProject = NO_PROJECT
  /** True if the database names this process for the suspect under way. */
  let holdsSuspect = false
  /** True if rows may be ready for which there was no room. */
  let hasLeftBehind = false

  const poke = (): void => {
    isPoked = true
    if (claiming || isClosed || isFreeing || slots.free() === 0) return
    claiming = claimWhilePoked().finally(() => {
      claiming = null
      // A poke may have come after the last claim and before this.
      if (isPoked && slots.free() > 0) poke()
    })
  }

  return {
    poke,
    onRoom: () => {
      if (hasLeftBehind || isPoked) poke()
    },
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
      if (hasLeftBehind || isPoked) poke()
    },
    sweep: async (seen) => {
      try {
        if (holdsSuspect) await passSuspectOn()
        if (mayHaveStrays && !claiming && !options.isAdopting?.()) await freeStrays()
        if (seen.has_suspects && !isClosed && !claiming && slots.free() > 0) {
          // No claim meanwhile counts the slot that the suspect takes.
          claiming = takeSuspect().finally(() => {
            claiming = null
          })
          await claiming
        }
      } finally {
        if (seen.has_ready || isPoked) poke()
      }
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
    while (isPoked && !isClosed && !isFreeing) {
      isPoked = false
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
      // One turn of the event loop passes, so that slots that become free together are filled together.
      await new Promise(setImmediate)
      const free = slots.free()
      hasLeftBehind = free <= slots.kept
      if (free <= 0) return
      const ask = { owner: options.ownerId(), free, kept: slots.kept, cursor, ...slots.underWay() }
      const { claimed, cursor: next, mayHaveMore } = await options.claim(ask)
      cursor = next
      for (const one of claimed) begin(one)
      if (slots.free() <= slots.kept) hasLeftBehind = true
      // Rows may be left that only other processes have slots for.
      if (claimed.length === free || slots.free() <= slots.kept) options.onFull?.()
      if (claimed.length === free) return
      if (!mayHaveMore) return
      if (claimed.length === 0) emptyClaims++
    }
  }

  async function takeSuspect(): Promise<void> {
    if (holdsSuspect) return
    const claimed = await options.claimSuspect(options.ownerId(), lastSuspectProject).catch((error: unknown) => {
      // The answer may be lost, and the suspect this process's: the next sweeps free it and pass it on.
      holdsSuspect = true
      mayHaveStrays = true
      throw error
    })
    if (!claimed) return
    log.warn({ id: claimed.id }, `one of the ${name} that took two processes with it is tried again`)
    suspect = claimed
    lastSuspectProject = claimed.project_id
    holdsSuspect = true
    begin(claimed)
  }

  function begin(claimed: Claimed): void {
    slots.take(claimed.project_id)
    workOn(claimed)
  }

  function workOn(claimed: Claimed): void {
    const done = options
      .work(claimed)
      .then((isSettled) => {
        if (!isSettled) mayHaveStrays = true
      })
      .finally(async () => {
        active.delete(claimed)
        slots.release(claimed.project_id)
        if (!isClosed && (hasLeftBehind || isPoked || options.makesReady(claimed))) poke()
        // If this fails, the next sweep passes the suspect on.
        if (claimed === suspect) await passSuspectOn().catch(() => {})
      })
    active.set(claimed, done)
  }

  async function passSuspectOn(): Promise<void> {
    const passed = suspect
    if (!(await options.releaseSuspect(options.ownerId())) || suspect !== passed) return
    holdsSuspect = false
    suspect = null
  }

  /** Nothing is claimed meanwhile: a row claimed now would not be in hand yet, and would be taken for a stray. */
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
