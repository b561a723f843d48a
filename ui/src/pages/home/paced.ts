import type { QueryKey, UseQueryOptions } from '@tanstack/react-query'
import { ApiError } from '../../api/client.ts'
import type { Pace } from './pace.ts'

/** The stream of changes tells what to read again, so a look at another window is no reason to read all again. */
const FRESH_MS = 30_000
const MOST_TRIES = 2
/** The limit is counted by the second, and the pauses between tries grow. */
const MOST_TRIES_OF_TOO_MANY = 5
const TOO_MANY = 429

/** The query, whose reads start at the pace and are tried again when the server had too many requests. */
export function paced<Data, Key extends QueryKey>(
  query: UseQueryOptions<Data, Error, Data, Key>,
  { pace, rank }: { pace: Pace; rank: number },
): UseQueryOptions<Data, Error, Data, Key> {
  const { queryFn: read } = query
  if (typeof read !== 'function') return query
  return {
    ...query,
    staleTime: query.staleTime ?? FRESH_MS,
    retry: (failures, error) => failures < triesFor(error),
    // Without this list every answer wraps the results of all projects anew, which makes a page of 200 projects stand still.
    notifyOnChangeProps: ['data', 'error', 'status'],
    queryFn: async (context) => {
      await pace.enter(rank, context.signal)
      return read(context)
    },
  }
}

function triesFor(error: Error): number {
  const status = error instanceof ApiError ? error.status : 0
  if (status === TOO_MANY) return MOST_TRIES_OF_TOO_MANY
  return status >= 400 && status < 500 ? 0 : MOST_TRIES
}
