import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { databaseTime } from '../../db/database-time.ts'
import type { Pool } from '../../db/pool.ts'
import { listProjects } from '../../identity/projects.ts'
import { unavailable } from '../../kernel/errors.ts'
import { instantFilter } from '../../kernel/fields.ts'
import { type Home, homeParts, homeSchema } from '../../kernel/home.ts'
import { isInstanceAdmin, type Principal } from '../../kernel/principal.ts'
import type { App } from '../http/app.ts'
import { principalOf } from '../http/auth.ts'
import type { ProjectPlaces } from '../http/project-places.ts'
import { routesOf } from '../http/routes-of.ts'
import { answers } from '../http/shapes.ts'
import { readHome } from './read-home.ts'

const openTo = routesOf('Home')
const MOST_PROJECTS = 1_000
const DAY_MS = 24 * 60 * 60_000
/** A person waits for the answer. */
const PART_MS = 1_500

const homeQuery = z.strictObject({
  since: instantFilter.optional().describe('What failed from this instant on is told; by default since a day ago.'),
})

export function addHomeRoutes(app: App, { pool, places }: { pool: Pool; places: ProjectPlaces }): void {
  app.get(
    '/api/home',
    openTo('authenticated', 'Show what waits, runs and failed in all projects these credentials can see', {
      querystring: homeQuery,
      response: answers(200, homeSchema),
    }),
    async (request, reply) => {
      const principal = principalOf(request)
      const taken = isInstanceAdmin(principal) || places.take(request, reply, placeOf(principal), true)
      if (taken !== true && !(await taken)) return reply.hijack()
      try {
        return await showHome(pool, principal, request)
      } finally {
        places.leave(request)
      }
    },
  )
}

/** The projects are many and the pool is shared, so a person has one such request at work, and so has a key's project. */
const placeOf = (principal: Principal): string =>
  principal.type === 'key' ? principal.projectId : `home of ${principal.id}`

async function showHome(
  pool: Pool,
  principal: Principal,
  { query }: FastifyRequest<{ Querystring: z.infer<typeof homeQuery> }>,
): Promise<Home> {
  const now = await databaseTime(pool)
  const since = query.since === undefined ? new Date(now.getTime() - DAY_MS) : new Date(query.since)
  const { items: projects, next_cursor } = await listProjects(pool, principal, { limit: MOST_PROJECTS })
  const home = await readHome(pool, { projects, hasMore: next_cursor !== null, since, now, timeMs: PART_MS })
  if (home.incomplete.length === homeParts.length) throw unavailable('The database takes too long. Try again.')
  return home
}
