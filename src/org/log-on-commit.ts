import type { Db } from '../db/pool.ts'
import { afterCommit } from '../db/transaction.ts'
import type { Log, LogFields } from '../kernel/log.ts'
import { type About, noteOperation, type Operation } from '../kernel/operation.ts'

/** Logs an operation once its transaction is committed. */
export function logOnCommit(tx: Db, log: Log, operation: Operation, about: About, more: LogFields = {}): void {
  afterCommit(tx, () => noteOperation(log, operation, about, more))
}
