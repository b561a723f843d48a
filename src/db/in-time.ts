import { pgFailure } from './failures.ts'
import type { Client } from './pool.ts'

/** Null if the time is up. The transaction goes on. */
export async function inTime<Result>(tx: Client, leftMs: number, work: () => Promise<Result>): Promise<Result | null> {
  if (leftMs < 1) return null
  await tx.query(`savepoint in_time; set local statement_timeout = ${Math.ceil(leftMs)}`)
  try {
    return await work()
  } catch (error) {
    if (pgFailure(error)?.code !== '57014') throw error
    await tx.query('rollback to savepoint in_time')
    return null
  }
}
