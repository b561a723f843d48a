// Fills the slots of this process. Whoever makes a run ready pokes; a slot that frees up claims the next run itself. A
// run that took a process with it before runs alone: the others are handed back first, and nothing is claimed beside it.
import type { Log } from '../kernel/log.ts'

export interface DispatcherOptions<Claimed extends { id: string }> {
  slots: number
  /** At most `limit` runs that want a slot, now owned by this process. */
  claim: (limit: number, suspects: boolean) => Promise<Claimed[]>
  isSuspectWaiting: () => Promise<boolean>
  /** Works on the run until it ends, parks or is given up. Must not throw. */
  work: (claimed: Claimed) => Promise<void>
  /** More wanted a slot than there were: others may have one. */
  onFull: () => void
  /** Every run shall give its slot back: at its next step, and at once when this is called again. */
  onYield: (isUrgent: boolean) => void
  log: Log
}

export interface Dispatcher {
  /** Something may want a slot. */
  poke(): void
  free(): number
  active(): number
  isClaiming(): boolean
  /** Looks for runs that must be taken alone; also the fallback for pokes that were lost. */
  sweep(): Promise<void>
  /** Claims nothing any more. */
  close(): void
  /** Resolves when every slot is free. */
  stop(): Promise<void>
}

const HAND_BACK_WITHIN_MS = 5_000

export function createDispatcher<Claimed extends { id: string }>(options: DispatcherOptions<Claimed>): Dispatcher {
  const active = new Set<Promise<void>>()
  let isStopped = false
  let isIsolating = false
  let claiming: Promise<void> | null = null
  let isPokedAgain = false

  const free = (): number => options.slots - active.size
  const poke = (): void => {
    isPokedAgain = true
    // Begun only where it will claim: one that ends before `claiming` is set would be taken for under way for ever.
    if (claiming === null && !isIsolating && !isStopped) claiming = claimWhilePoked()
  }
  return {
    poke,
    free,
    active: () => active.size,
    isClaiming: () => claiming !== null || isIsolating,
    sweep: async () => {
      if (!isIsolating && !isStopped && options.slots > 0 && (await options.isSuspectWaiting())) await isolate()
      poke()
    },
    close: () => {
      isStopped = true
    },
    stop: async () => {
      isStopped = true
      await claiming
      await allFree()
    },
  }

  async function claimWhilePoked(): Promise<void> {
    while (isPokedAgain && !isStopped && !isIsolating) {
      isPokedAgain = false
      try {
        await fill()
      } catch (error) {
        options.log.warn({ err: error }, 'runs could not be claimed; trying again shortly')
      }
    }
    claiming = null
  }

  async function fill(): Promise<void> {
    // One turn of the loop: slots that become free together are filled together.
    await new Promise(setImmediate)
    const limit = free()
    if (limit <= 0) return
    const claimed = await options.claim(limit, false)
    for (const run of claimed) begin(run)
    if (claimed.length === limit) options.onFull()
  }

  function begin(run: Claimed): void {
    const work = options.work(run).finally(() => {
      active.delete(work)
      if (!isStopped) poke()
    })
    active.add(work)
  }

  async function isolate(): Promise<void> {
    isIsolating = true
    try {
      await claiming
      options.onYield(false)
      const hurry = setTimeout(() => options.onYield(true), HAND_BACK_WITHIN_MS)
      await allFree()
      clearTimeout(hurry)
      for (;;) {
        const [suspect] = isStopped ? [] : await options.claim(1, true)
        if (!suspect) return
        begin(suspect)
        await allFree()
      }
    } finally {
      isIsolating = false
    }
  }

  async function allFree(): Promise<void> {
    while (active.size > 0) await Promise.race(active)
  }
}
