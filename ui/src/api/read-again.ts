// Reads again after a change. A read under way is not cancelled, or a busy feed would never let a list arrive; a read that
// began before the change is followed by one more.
import type { Query, QueryClient, QueryKey } from '@tanstack/react-query'

/** Queries whose read under way is followed by one more. */
const followed = new WeakSet<Query>()

/** Reads the queries below the key. Each of them is read at least once from its beginning after this call. */
export function readAgain(client: QueryClient, queryKey: QueryKey = []): void {
  const underWay = client.getQueryCache().findAll({ queryKey, fetchStatus: 'fetching' })
  const idle = (query: Query): boolean => !underWay.includes(query)
  void client.invalidateQueries({ queryKey, predicate: idle }, { cancelRefetch: false })
  for (const query of underWay) void readOnceMore(client, query)
}

async function readOnceMore(client: QueryClient, query: Query): Promise<void> {
  if (followed.has(query)) return
  followed.add(query)
  // A read that failed is followed too.
  await query.promise?.catch(() => {})
  followed.delete(query)
  await client.invalidateQueries({ predicate: (each) => each === query }, { cancelRefetch: false })
}
