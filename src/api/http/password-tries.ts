import type { FastifyRequest } from 'fastify'
import type { Db } from '../../db/pool.ts'
import { isKnownAddress } from '../../identity/known-addresses.ts'
import { clientOf, type RateLimits } from './rate-limits.ts'

/**
 * Counts one try at an account's password, and throws RATE_LIMITED when there were too many. The address is counted
 * before the database is asked. All strangers share one count per account; an address from which the account's owner
 * has signed in before has its own count.
 */
export async function countPasswordTry(
  { db, limits }: { db: Db; limits: RateLimits },
  request: FastifyRequest,
  email: string,
): Promise<void> {
  limits.countTry(request.ip)
  const client = clientOf(request.ip)
  limits.countAccount(email, (await isKnownAddress(db, email, client)) ? client : null)
}
