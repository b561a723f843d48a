// The one read of the home page, over all projects of the person.
import { queryOptions } from '@tanstack/react-query'
import type { Home } from '../../../src/kernel/home.ts'
import { get } from './client.ts'

/** The key of the read, which the stream of changes has read again. */
export const HOME_KEY = ['home'] as const
/** The stream of changes tells sooner; it does not tell of halts. */
const READ_EVERY_MS = 10_000

/** `since`: milliseconds; what failed from then on is told. */
export const homeQuery = (since: number) =>
  queryOptions({
    queryKey: [...HOME_KEY, since],
    queryFn: ({ signal }) => get<Home>('/api/home', { query: { since: new Date(since).toISOString() }, signal }),
    // A project that was just made must be in the figures.
    staleTime: 0,
    refetchInterval: READ_EVERY_MS,
  })
