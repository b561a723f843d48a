// Group commit: all appends of the process that come while one batch is being committed go out together in the next.
// Runs and flows have journals of their own, so each gives the statements for its batches.
import { explainFailure } from '../db/failures.ts'
import type { Db, Pool } from '../db/pool.ts'
import { afterCommit, inTransaction } from '../db/transaction.ts'
import type { Appended, Journal, JournalOptions } from './append.ts'
import type { Entry, Written } from './append-batch.ts'
import { type Append, addEvents, type NewEvent, type Prepared, prepare, storedEvents } from './entries.ts'

/** The statements that turn appends into rows. */
export interface Statements<Change> {
  /** The number of entries from which on a second statement beside the first is worth it (measured). */
  worthAnother: number
  /** One entry per row that is written. */
  entriesOf(batch: readonly Prepared<Change>[]): Entry<Change>[]
  /** Writes the entries in one statement. The result lacks entries that were not written. */
  append(db: Db, entries: readonly Entry<Change>[]): Promise<Map<string, Written>>
  /** Finds the entries that an earlier attempt committed before its connection was cut. */
  find(db: Db, entries: readonly Entry<Change>[]): Promise<Map<string, Written>>
}

interface Waiting<Change> {
  prepared: Prepared<Change>
  onTaken: (() => void) | null
  settle: (appended: Appended) => void
  fail: (error: unknown) => void
}

/** Thrown inside a transaction to roll it back. */
class Lost extends Error {}

const MOST_ENTRIES = 500
const MOST_CHARACTERS = 8_000_000
const RETRY_FOR_MS = 20_000
const MOST_UNDER_WAY = 2

export function createGroupCommit<Change>(
  { db, log, onWritten, now = Date.now }: JournalOptions,
  { worthAnother, entriesOf, append: appendBatch, find: findWritten }: Statements<Change>,
): Journal<Change> {
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
    appendIn: async (tx, append) => {
      const entries = entriesOf([prepare(append)])
      const written = await appendBatch(tx, entries)
      afterCommit(tx, () => {
        for (const entry of entries) publish(entry, written.get(entry.runId))
      })
      return answerFor(append.runId, written)
    },
    appendAfter: async (pool, work) => {
      const [appended] = await appendAllAfter(pool, async (tx) => [await work(tx)])
      return appended ?? { status: 'lost' }
    },
    appendAllAfter,
    drain: async () => {
      while (underWay.size > 0 || waiting.length > 0) {
        await Promise.race([...underWay.keys(), new Promise(setImmediate)])
      }
    },
  }

  async function appendAllAfter(pool: Pool, work: (tx: Db) => Promise<readonly Append<Change>[]>): Promise<Appended[]> {
    let runIds: readonly string[] = []
    try {
      const { entries, written } = await inTransaction(pool, async (tx) => {
        const appends = await work(tx)
        runIds = appends.map(({ runId }) => runId)
        const entries = entriesOf(appends.map((append) => prepare(append)))
        const written = await appendBatch(tx, entries)
        if (!runIds.every((runId) => written.has(runId))) throw new Lost()
        return { entries, written }
      })
      for (const entry of entries) publish(entry, written.get(entry.runId))
      return runIds.map((runId) => answerFor(runId, written))
    } catch (error) {
      if (error instanceof Lost && runIds.length === 1) return [{ status: 'lost' }]
      throw error
    }
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
      const entries = entriesOf(batch.map((one) => one.prepared))
      const written = await writeWithRetry(entries)
      if (onWritten) for (const entry of entries) publish(entry, written.get(entry.runId))
      return () => settleInTurns(batch, written)
    } catch (error) {
      if (batch.length === 1 || explainFailure(error)?.code === 'UNAVAILABLE') {
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

  /**
   * Many runs that go on at once would all work and then all wait for the next commit, one processor idle at a time.
   * The batch is settled in two halves, so that one half is written while the other works.
   */
  function settleInTurns(batch: readonly Waiting<Change>[], written: Map<string, Written>): void {
    const first = batch.length < 2 * worthAnother ? batch : batch.slice(0, batch.length / 2)
    const settle = (part: readonly Waiting<Change>[]): void => {
      for (const { prepared, settle } of part) settle(answerFor(prepared.runId, written))
    }
    settle(first)
    // The first half runs in the first turn; its appends are under way before the second half goes on.
    if (first !== batch) setImmediate(() => setImmediate(() => settle(batch.slice(first.length))))
  }

  function publish(entry: Entry<Change>, written: Written | undefined): void {
    // The seqs of an entry that was written in part are not known here: watchers read its events.
    if (written && !written.isPartial) onWritten?.(storedEvents(entry, written.firstSeq, written.at))
  }

  async function writeWithRetry(entries: readonly Entry<Change>[]): Promise<Map<string, Written>> {
    const giveUpAt = now() + RETRY_FOR_MS
    for (let waitMs = 50, attempt = 1; ; waitMs = Math.min(waitMs * 2, 1_000), attempt++) {
      try {
        // After a cut connection nobody knows whether the batch was committed: its events are looked up by their ids.
        const found = attempt === 1 ? new Map<string, Written>() : await findWritten(db, entries)
        const open = entries.filter((entry) => !found.has(entry.runId))
        return open.length === 0 ? found : new Map([...found, ...(await appendBatch(db, open))])
      } catch (error) {
        if (explainFailure(error)?.code !== 'UNAVAILABLE' || now() > giveUpAt) throw error
        log.warn({ err: error, entries: entries.length }, 'the journal could not be written; trying again')
        await new Promise((resolve) => setTimeout(resolve, waitMs))
      }
    }
  }
}

/**
 * The oldest appends that fit one statement. A run's second append waits until the first is committed, to keep the
 * order; an append of a run whose sub-run's events are in this batch waits too, because a statement changes a row once.
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

function answerFor(runId: string, written: Map<string, Written>): Appended {
  const answer = written.get(runId)
  return answer ? { status: 'written', ...answer } : { status: 'lost' }
}
