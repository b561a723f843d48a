import { z } from 'zod'
import { searchAgents } from '../../agents/search-agents.ts'
import { inTime } from '../../db/in-time.ts'
import type { Db, Pool } from '../../db/pool.ts'
import type { Search } from '../../db/search-rows.ts'
import { inTransaction } from '../../db/transaction.ts'
import { searchFlows } from '../../flows/definition/search-flows.ts'
import { searchFlowRuns } from '../../flows/history/search-flow-runs.ts'
import { unavailable } from '../../kernel/errors.ts'
import {
  type RankedHit,
  readSought,
  type SearchAnswer,
  type SearchKind,
  searchAnswerSchema,
  searchKinds,
} from '../../kernel/search.ts'
import { searchObjects } from '../../objects/search-objects.ts'
import { searchRuns } from '../../runs/search-runs.ts'
import { searchTasks } from '../../tasks/search-tasks.ts'
import type { App } from '../http/app.ts'
import { routesOf } from '../http/routes-of.ts'
import { answers, projectParams, wholeNumber } from '../http/shapes.ts'

const openTo = routesOf('Search')
const MOST_OF_A_KIND = 20
/** The time for all kinds together. A person waits for the answer. */
const TIME_MS = 2_000

const searchQuery = z.strictObject({
  q: z
    .string()
    .max(200)
    .describe('A name, some words, or the beginning of an id (eight letters or more). Wildcards have no meaning.'),
  kind: z.enum(searchKinds).optional().describe('Look for things of this kind alone.'),
  limit: wholeNumber({ most: MOST_OF_A_KIND })
    .default(5)
    .meta({ type: 'integer', minimum: 1, maximum: MOST_OF_A_KIND })
    .describe('The most things of each kind.'),
})

export function addSearchRoutes(app: App, { pool }: { pool: Pool }): void {
  app.get(
    '/api/projects/:id/search',
    openTo('viewer', 'Find agents, runs, flows, flow runs, objects and tasks by name, id or text', {
      params: projectParams,
      querystring: searchQuery,
      response: answers(200, searchAnswerSchema),
    }),
    async (request): Promise<SearchAnswer> => {
      const { q, kind, limit } = request.query
      const sought = readSought(q)
      if (!sought) return { q, items: [], incomplete: [] }
      const kinds = kind === undefined ? searchKinds : [kind]
      const search = { projectId: request.params.id, sought, limit }
      const { hits, incomplete } = await searchAll(pool, search, kinds)
      if (incomplete.length === kinds.length) {
        throw unavailable('The search took too long. Look for a longer text, or try again.')
      }
      const items = hits.sort(compareHits).map(({ rank: _, ...hit }) => hit)
      return { q, items, incomplete }
    },
  )
}

interface Found {
  hits: RankedHit[]
  incomplete: SearchKind[]
}

async function searchAll(pool: Pool, search: Search, kinds: readonly SearchKind[]): Promise<Found> {
  return inTransaction(pool, async (tx) => {
    const until = performance.now() + TIME_MS
    const found: Found = { hits: [], incomplete: [] }
    for (const kind of kinds) {
      const hits = await inTime(tx, until - performance.now(), () => searchKind(tx, search, kind))
      if (hits) found.hits.push(...hits)
      else found.incomplete.push(kind)
    }
    return found
  })
}

/** The best names are enough to find their runs by. */
const MOST_NAMES = 3

async function searchKind(db: Db, search: Search, kind: SearchKind): Promise<RankedHit[]> {
  const idsOf = (hits: readonly RankedHit[]): string[] => hits.map(({ id }) => id)
  const names = { ...search, limit: MOST_NAMES }
  switch (kind) {
    case 'agent':
      return searchAgents(db, search)
    case 'run':
      return searchRuns(db, search, idsOf(await searchAgents(db, names)))
    case 'flow':
      return searchFlows(db, search)
    case 'flow_run':
      return searchFlowRuns(db, search, idsOf(await searchFlows(db, names)))
    case 'object':
      return searchObjects(db, search)
    case 'task':
      return searchTasks(db, search)
  }
}

/** The best first; of equals in the order of the kinds, and then the newest. */
const compareHits = (a: RankedHit, b: RankedHit): number =>
  a.rank - b.rank ||
  searchKinds.indexOf(a.kind) - searchKinds.indexOf(b.kind) ||
  (a.at < b.at ? 1 : a.at > b.at ? -1 : 0)
