// The reads of the pages about objects.
import { queryOptions } from '@tanstack/react-query'
import type { Member } from '../../../src/kernel/access.ts'
import type { GraphObject, ObjectVersion, Relationship } from '../../../src/kernel/object.ts'
import type { Task } from '../../../src/kernel/task.ts'
import { get, type Page } from './client.ts'
import { LONGEST_PAGE, pagedQuery, readAll, readUpTo } from './pages.ts'
import { projectPath } from './queries.ts'

export interface ObjectFilter {
  type?: string | undefined
  q?: string | undefined
}

export const objectsQuery = (projectId: string, { type, q }: ObjectFilter, limit = 50) =>
  pagedQuery<GraphObject>(['object', projectId, 'list', { type, q, limit }], projectPath(projectId, '/objects'), {
    limit,
    type,
    q,
  })

/** A search for an object to choose: the first matches only. */
export const foundObjectsQuery = (projectId: string, q: string) =>
  queryOptions({
    queryKey: ['object', projectId, 'list', 'found', q],
    queryFn: () => get<Page<GraphObject>>(projectPath(projectId, '/objects'), { query: { limit: 20, q } }),
  })

const COUNTED_PAGES = 5
const COUNTED_PER_PAGE = 200

export interface TypeCounts {
  types: { type: string; count: number }[]
  /** False if there are more objects than were counted. */
  isWhole: boolean
}

/** The types of the newest thousand objects, with their counts. */
export const objectTypesQuery = (projectId: string) =>
  queryOptions({
    queryKey: ['object', projectId, 'list', 'types'],
    queryFn: () => countTypes(projectId),
    staleTime: 30_000,
  })

async function countTypes(projectId: string): Promise<TypeCounts> {
  const path = projectPath(projectId, '/objects')
  const { items, next_cursor } = await readUpTo<GraphObject>(path, { limit: COUNTED_PER_PAGE }, COUNTED_PAGES)
  const counts = new Map<string, number>()
  for (const { type } of items) counts.set(type, (counts.get(type) ?? 0) + 1)
  const types = [...counts].map(([type, count]) => ({ type, count })).toSorted((a, b) => (a.type < b.type ? -1 : 1))
  return { types, isWhole: next_cursor === null }
}

export const objectPath = (projectId: string, objectId: string, rest = ''): string =>
  projectPath(projectId, `/objects/${objectId}${rest}`)

export const objectQuery = (projectId: string, objectId: string) =>
  queryOptions({
    queryKey: ['object', projectId, objectId],
    queryFn: () => get<GraphObject>(objectPath(projectId, objectId)),
  })

export const objectHistoryQuery = (projectId: string, objectId: string) =>
  pagedQuery<ObjectVersion>(['object', projectId, objectId, 'history'], objectPath(projectId, objectId, '/history'), {
    limit: 20,
  })

export const relationshipsQuery = (projectId: string, objectId: string) =>
  pagedQuery<Relationship>(
    ['object', projectId, objectId, 'relationships'],
    objectPath(projectId, objectId, '/relationships'),
    { limit: 20 },
  )

/** The newest relationships of an object, as many as a graph has room for. */
export const aroundQuery = (projectId: string, objectId: string) =>
  queryOptions({
    queryKey: ['object', projectId, objectId, 'around'],
    queryFn: () => get<Page<Relationship>>(objectPath(projectId, objectId, '/relationships'), { query: { limit: 40 } }),
  })

/** The open suggestions of the project. The newest two hundred are looked through. */
export const openSuggestionsQuery = (projectId: string) =>
  queryOptions({
    queryKey: ['task', projectId, 'list', 'suggestions'],
    queryFn: () =>
      get<Page<Task>>(projectPath(projectId, '/tasks'), {
        query: { kind: 'suggestion', status: 'pending', limit: 200 },
      }),
  })

export const peopleQuery = (projectId: string) =>
  queryOptions({
    queryKey: ['member', projectId, 'list', 'people'],
    queryFn: () => readAll<Member>(projectPath(projectId, '/members'), { limit: LONGEST_PAGE }),
    staleTime: 60_000,
  })
