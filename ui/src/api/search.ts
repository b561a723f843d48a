// The search over a project, by name, id or text.
import { queryOptions } from '@tanstack/react-query'
import type { SearchAnswer, SearchHit } from '../../../src/kernel/search.ts'
import { ApiError, get } from './client.ts'
import { projectPath } from './queries.ts'

const SHORTEST = 2

export interface Found extends SearchHit {
  projectId: string
}

export const searchQuery = (projectId: string, text: string) =>
  queryOptions({
    queryKey: ['search', projectId, text],
    queryFn: ({ signal }) => search(projectId, text, signal),
    enabled: text.length >= SHORTEST,
    staleTime: 10_000,
  })

/** A Muster without this route finds nothing. */
async function search(projectId: string, q: string, signal: AbortSignal): Promise<Found[]> {
  try {
    const { items } = await get<SearchAnswer>(projectPath(projectId, '/search'), { query: { q }, signal })
    return items.map((item) => ({ ...item, projectId }))
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return []
    throw error
  }
}
