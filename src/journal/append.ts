// Everything that happens to a run is appended here, by group commit (group-commit.ts). One statement locks the run
// rows in id order, takes seq from the row, checks the fence and writes the row's projection, so journal and row never
// differ.
import { appendBatch, findWritten } from './append-batch.ts'
import { entriesOf } from './entries.ts'
import { createGroupCommit } from './group-commit.ts'
import type { Journal, JournalOptions } from './journal.ts'

export function createJournal(options: JournalOptions): Journal {
  return createGroupCommit(options, { worthAnother: 16, entriesOf, append: appendBatch, find: findWritten })
}
