// The header Prefer (RFC 7240) of requests that start something: how long the caller wants to wait for its end.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'

export const MOST_WAIT_MS = 600_000

/** Null if the caller says nothing. Preferences that cannot be read are passed over, as the RFC asks. */
export type Preference = { waitMs: number; applied: string } | null

const PREFER =
  'respond-async: answer 202 at once. wait=N: answer 200 once it has ended or paused, or 202 after N seconds; more than 600 is 600.'

export const startHeaders = z.looseObject({
  prefer: z.string().optional().describe(PREFER),
  'idempotency-key': z.string().optional().describe('The same key and body give the same run for 24 h.'),
})

export function preferenceOf(header: string | string[] | undefined): Preference {
  const preferences = [header].flat().flatMap((each) => each?.split(',') ?? [])
  if (preferences.some((each) => /^\s*respond-async\s*(;|$)/i.test(each)))
    return { waitMs: 0, applied: 'respond-async' }
  for (const each of preferences) {
    const [, seconds, quoted] = /^\s*wait\s*=\s*(?:(\d+)|"(\d+)")\s*(?:;|$)/i.exec(each) ?? []
    const wanted = seconds ?? quoted
    if (wanted === undefined) continue
    const waitMs = Math.min(Number(wanted) * 1_000, MOST_WAIT_MS)
    return { waitMs, applied: `wait=${waitMs / 1_000}` }
  }
  return null
}

/** Says in the answer which preference was heeded, and returns it. */
export function heedPreference(request: FastifyRequest, reply: FastifyReply): Preference {
  const preference = preferenceOf(request.headers.prefer)
  if (preference) reply.header('preference-applied', preference.applied)
  return preference
}
