// Group commit: all appends of the process that come while one batch is being committed go out together in the next.
import { isUnavailable } from '../db/failures.ts'
import { addEvents, type NewEvent, type Prepared, prepare } from './entries.ts'
import type { Written } from './entry.ts'
import type { Appended, Journal, JournalOptions } from './journal.ts'
import { answerFor, createEntryWriter, type Statements } from './write-entries.ts'

interface Waiting<Change> {
  prepared: Prepared<Change>
  onTaken: (() => void) | null
  settle: (appended: Appended) => void
  fail: (error: unknown) => void
}

const MOST_ENTRIES = 500
const MOST_CHARACTERS = 8_000_000
const MOST_UNDER_WAY = 2

export function createGroupCommit<Change>(options: JournalOptions, statements: Statements<Change>): Journal<Change> {
  const { worthAnother } = statements
  const writer = createEntryWriter(options, statements)
  let waiting: Waiting<Change>[] = []
  let isScheduled = false
  const underWay = new Map<Promise<void>, readonly Waiting<Change>[]>()

  return {
    append: (append) =>
      new Promise((settle, fail) => {
        add({ prepared: prepare(append), onTaken: null, settle, fail })
      }),
    appendOpen: (append) => {
      const prepared = prepare(append)
      const { promise: taken, resolve: onTaken } = Promise.withResolvers<void>()
      const { promise: appended, resolve: settle, reject: fail } = Promise.withResolvers<Appended>()
      const one: Waiting<Change> = { prepared, onTaken, settle, fail }
      add(one)
      const join = (events: readonly NewEvent[]): boolean => {
        if (one.onTaken === null) return false
        addEvents(prepared, events)
        return true
      }
      return { appended, taken, join }
    },
    appendIn: writer.appendIn,
    appendAllIn: writer.appendAllIn,
    appendAfter: async (pool, work) => {
      const [appended] = await writer.appendAllAfter(pool, async (tx) => [await work(tx)])
      return appended ?? { status: 'lost' }
    },
    appendAllAfter: writer.appendAllAfter,
    drain: async () => {
      while (underWay.size > 0 || waiting.length > 0) {
        await Promise.race([...underWay.keys(), new Promise(setImmediate)])
      }
    },
  }

  function add(one: Waiting<Change>): void {
    waiting.push(one)
    schedule()
  }

  /** Waits one turn of the event loop, so that runs that the last batch released can join the next one. */
  function schedule(): void {
    if (isScheduled) return
    isScheduled = true
    setImmediate(() => {
      isScheduled = false
      while (isEnough()) if (!begin()) return
    })
  }

  /** A second statement beside the first keeps both processors busy, if enough entries wait. */
  function isEnough(): boolean {
    if (underWay.size === 0) return waiting.length > 0
    return underWay.size < MOST_UNDER_WAY && waiting.length >= worthAnother
  }

  /** Returns false if all waiting appends are about runs that are being written already. */
  function begin(): boolean {
    const busy = new Set([...underWay.values()].flatMap((batch) => batch.map((one) => one.prepared.runId)))
    const { batch, rest } = takeBatch(waiting, busy)
    if (batch.length === 0) return false
    waiting = rest
    for (const one of batch) {
      one.onTaken?.()
      one.onTaken = null
    }
    const flushing = flush(batch).then((settle) => {
      underWay.delete(flushing)
      settle()
      if (waiting.length > 0) schedule()
    })
    underWay.set(flushing, batch)
    return true
  }

  /** Never rejects. Returns the function that settles the appends of the batch. */
  async function flush(batch: readonly Waiting<Change>[]): Promise<() => void> {
    try {
      const written = await writer.write(batch.map((one) => one.prepared))
      return () => settleInTurns(batch, written, worthAnother)
    } catch (error) {
      if (batch.length === 1 || isUnavailable(error)) {
        return () => {
          for (const { fail } of batch) fail(error)
        }
      }
      // One entry that cannot be stored must not fail the others.
      const half = Math.ceil(batch.length / 2)
      const settles = [await flush(batch.slice(0, half)), await flush(batch.slice(half))]
      return () => {
        for (const settle of settles) settle()
      }
    }
  }
}

/**
 * The batch is settled in halves: one half is written while the other half computes. Otherwise all runs would compute
 * and then all wait, so that client and server are idle in turn.
 */
function settleInTurns<Change>(
  batch: readonly Waiting<Change>[],
  written: Map<string, Written>,
  worthAnother: number,
): void {
  const first = batch.length < 2 * worthAnother ? batch : batch.slice(0, batch.length / 2)
  const settle = (part: readonly Waiting<Change>[]): void => {
    for (const { prepared, settle } of part) settle(answerFor(prepared.runId, written))
  }
  settle(first)
  // The first half runs in the first turn; its appends are under way before the second half continues.
  if (first !== batch) setImmediate(() => setImmediate(() => settle(batch.slice(first.length))))
}

/**
 * The oldest appends that fit one statement. A statement changes a row once: a run's second append waits for the first,
 * and an append of a run waits if events of its sub-run are in this batch.
 */
function takeBatch<Change>(
  waiting: Waiting<Change>[],
  busy: ReadonlySet<string>,
): { batch: Waiting<Change>[]; rest: Waiting<Change>[] } {
  const own = new Set<string>(busy)
  const forwardedTo = new Set<string>()
  const batch: Waiting<Change>[] = []
  const rest: Waiting<Change>[] = []
  let characters = 0
  for (const one of waiting) {
    const { runId, ancestors, size } = one.prepared
    const fits =
      batch.length < MOST_ENTRIES &&
      characters < MOST_CHARACTERS &&
      !own.has(runId) &&
      !forwardedTo.has(runId) &&
      !ancestors.some((ancestor) => own.has(ancestor))
    own.add(runId)
    if (!fits) {
      rest.push(one)
      continue
    }
    batch.push(one)
    characters += size
    for (const ancestor of ancestors) forwardedTo.add(ancestor)
  }
  return { batch, rest }
}
