import type { Pool } from '../../db/pool.ts'
import { publishNames } from '../../queue/process-names.ts'

/** Publishes the names of the process's functions, under each name that the process has had. */
export function createFunctionList(
  pool: Pool,
  functions: ReadonlyMap<string, unknown>,
): (ownerId: string) => Promise<void> {
  let publishedAs: string | null = null
  return async (ownerId) => {
    if (ownerId === publishedAs) return
    await publishNames(pool, ownerId, 'functions', [...functions.keys()])
    publishedAs = ownerId
  }
}
