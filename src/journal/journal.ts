import type { Db, Pool } from '../db/pool.ts'
import type { Log } from '../kernel/log.ts'
import type { Append, NewEvent, StoredEvent } from './entries.ts'
import type { RunChange } from './run-change.ts'

/** lost: another process owns the run now, or there is no such run; nothing was written. */
export type Appended = { status: 'written'; firstSeq: number; at: Date; isCancelled?: boolean } | { status: 'lost' }

export interface Journal<Change = RunChange> {
  /** Resolves when the events are committed. Appends of one run keep their order. */
  append(entry: Append<Change>): Promise<Appended>
  /** Appends like `append`, and further events may join until the append is under way. */
  appendOpen(entry: Append<Change>): OpenAppend
  /** The last statement of a transaction that also writes other tables. The events are published after its commit. */
  appendIn(tx: Db, entry: Append<Change>): Promise<Appended>
  /** Works like `appendIn`, for several runs with one statement. */
  appendAllIn(tx: Db, entries: readonly Append<Change>[]): Promise<Appended[]>
  /**
   * Runs `work` and appends its events, in one transaction that is rolled back if the run is lost. Must not be called
   * while another append of this run is under way.
   */
  appendAfter(pool: Pool, work: (tx: Db) => Promise<Append<Change>>): Promise<Appended>
  /** Works like `appendAfter`, for several runs in one transaction. Throws, and writes nothing, if one run is lost. */
  appendAllAfter(pool: Pool, work: (tx: Db) => Promise<readonly Append<Change>[]>): Promise<Appended[]>
  /** Resolves when every append is settled. */
  drain(): Promise<void>
}

export interface OpenAppend {
  appended: Promise<Appended>
  /** Resolves when the append is under way, and no event can join it any more. */
  taken: Promise<void>
  /** Returns false if the append is under way; these events then need an append of their own. */
  join(events: readonly NewEvent[]): boolean
}

export interface JournalOptions {
  db: Db
  log: Log
  /** Called with the committed events, in order of seq per run. Must not throw. */
  onWritten?: (events: StoredEvent[]) => void
  now?: () => number
}
