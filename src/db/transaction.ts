import type pg from 'pg'
import { retryCollisions } from './collisions.ts'
import type { Client, Db, Pool } from './pool.ts'

/**
 * Runs `work` in one transaction on one connection. Serialisation failures and deadlocks are retried, so `work` must be
 * free of effects outside the database. Never take a second connection inside.
 */
export async function inTransaction<Result>(pool: Pool, work: (tx: Client) => Promise<Result>): Promise<Result> {
  return retryCollisions(async () => {
    const acts: (() => void)[] = []
    const result = await attemptTransaction(pool, work, acts)
    for (const act of acts) act()
    return result
  })
}

const afterwards = new WeakMap<Db, (() => void)[]>()

/**
 * Calls `act`, which must not throw, after the commit of `tx`, and never after a rollback, so the log tells only of
 * changes that happened; at once if `tx` is no transaction of `inTransaction`.
 */
export function afterCommit(tx: Db, act: () => void): void {
  const acts = afterwards.get(tx)
  if (acts) acts.push(act)
  else act()
}

async function attemptTransaction<Result>(
  pool: Pool,
  work: (tx: Client) => Promise<Result>,
  acts: (() => void)[],
): Promise<Result> {
  const client = await pool.connect()
  let broken: Error | undefined
  // Without a listener a connection cut between two statements would be an unhandled 'error' event.
  const onError = (error: Error): void => {
    broken = error
  }
  client.on('error', onError)
  afterwards.set(client, acts)
  try {
    await client.query('begin')
    const result = await work(client)
    await commit(client)
    return result
  } catch (error) {
    await client.query('rollback').catch((rollbackError: Error) => {
      broken = rollbackError
    })
    throw error
  } finally {
    afterwards.delete(client)
    client.off('error', onError)
    client.release(broken)
  }
}

/**
 * Commits, or throws. PostgreSQL answers the commit of a failed transaction with the tag ROLLBACK and no error: code
 * that swallowed the statement's failure would take the rollback for a commit.
 */
export async function commit(client: pg.ClientBase): Promise<void> {
  const { command } = await client.query('commit')
  if (command !== 'COMMIT') {
    throw new Error('A statement failed unnoticed, and the database rolled the transaction back at its commit.')
  }
}
