// Writes appends of a journal as rows and tells of them after their commit.
import { isUnavailable } from '../db/failures.ts'
import type { Db, Pool } from '../db/pool.ts'
import { afterCommit, inTransaction } from '../db/transaction.ts'
import { type Append, type Prepared, prepare, storedEvents } from './entries.ts'
import type { Entry, Written } from './entry.ts'
import type { Appended, Journal, JournalOptions } from './journal.ts'

export interface Statements<Change> {
  /** The number of entries from which on a second statement beside the first is worth it (measured). */
  worthAnother: number
  entriesOf(batch: readonly Prepared<Change>[]): Entry<Change>[]
  /** Writes the entries in one statement. The result lacks entries that were not written. */
  append(db: Db, entries: readonly Entry<Change>[]): Promise<Map<string, Written>>
  /** Finds the entries that an earlier attempt committed before its connection was cut. */
  find(db: Db, entries: readonly Entry<Change>[]): Promise<Map<string, Written>>
}

export interface EntryWriter<Change> extends Pick<Journal<Change>, 'appendIn' | 'appendAllIn' | 'appendAllAfter'> {
  /** Tries again while the database is away. The result lacks entries that were not written. */
  write(batch: readonly Prepared<Change>[]): Promise<Map<string, Written>>
}

class Lost extends Error {}

const RETRY_FOR_MS = 20_000

export function createEntryWriter<Change>(
  { db, log, onWritten, now = Date.now }: JournalOptions,
  { entriesOf, append: appendBatch, find: findWritten }: Statements<Change>,
): EntryWriter<Change> {
  return {
    write: async (batch) => {
      const entries = entriesOf(batch)
      const written = await writeWithRetry(entries)
      if (onWritten) for (const entry of entries) publish(entry, written.get(entry.runId))
      return written
    },
    appendIn: async (tx, append) => answerFor(append.runId, await writeIn(tx, [append])),
    appendAllIn: async (tx, appends) => {
      const written = await writeIn(tx, appends)
      return appends.map(({ runId }) => answerFor(runId, written))
    },
    appendAllAfter,
  }

  async function writeIn(tx: Db, appends: readonly Append<Change>[]): Promise<Map<string, Written>> {
    const entries = entriesOf(appends.map((append) => prepare(append)))
    const written = await appendBatch(tx, entries)
    afterCommit(tx, () => {
      for (const entry of entries) publish(entry, written.get(entry.runId))
    })
    return written
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
        if (!isUnavailable(error) || now() > giveUpAt) throw error
        log.warn({ err: error, entries: entries.length }, 'the journal could not be written; trying again')
        await new Promise((resolve) => setTimeout(resolve, waitMs))
      }
    }
  }
}

export function answerFor(runId: string, written: Map<string, Written>): Appended {
  const answer = written.get(runId)
  return answer ? { status: 'written', ...answer } : { status: 'lost' }
}
