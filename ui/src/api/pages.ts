// Lists that the API gives page by page.
import { infiniteQueryOptions } from '@tanstack/react-query'
import { get, type Page, type Query } from './client.ts'

/** The longest page that the API gives. */
export const LONGEST_PAGE = 200
/** Pages that are read in one go; a person who looks for something in a longer list searches for it. */
const MOST_PAGES = 20
export const ALL = Number.POSITIVE_INFINITY

/** A list that is read page by page, with "More". */
export const pagedQuery = <Item>(queryKey: readonly unknown[], path: string, query: Query = {}) =>
  infiniteQueryOptions({
    queryKey,
    queryFn: ({ pageParam }: { pageParam: string | null }) =>
      get<Page<Item>>(path, { query: { ...query, cursor: pageParam } }),
    initialPageParam: null,
    getNextPageParam: (page: Page<Item>) => page.next_cursor,
  })

/** The items of a list in one go. */
export const readAll = async <Item>(path: string, query: Query = {}, mostPages = MOST_PAGES): Promise<Item[]> =>
  (await readUpTo<Item>(path, query, mostPages)).items

/** The first pages of a list as one page. Its cursor is null unless the list goes on. */
export async function readUpTo<Item>(
  path: string,
  query: Query,
  mostPages: number,
  signal?: AbortSignal,
): Promise<Page<Item>> {
  const items: Item[] = []
  let next: string | null = null
  for await (const page of pagesOf<Item>(path, query, mostPages, signal)) {
    items.push(...page.items)
    next = page.next_cursor
  }
  return { items, next_cursor: next }
}

/** The first item of a list that fits, or null. */
export async function findIn<Item>(path: string, query: Query, fits: (item: Item) => boolean): Promise<Item | null> {
  for await (const page of pagesOf<Item>(path, query, MOST_PAGES)) {
    const found = page.items.find(fits)
    if (found !== undefined) return found
  }
  return null
}

async function* pagesOf<Item>(
  path: string,
  query: Query,
  mostPages: number,
  signal?: AbortSignal,
): AsyncGenerator<Page<Item>> {
  let cursor: string | null = null
  for (let read = 0; read < mostPages; read++) {
    const page: Page<Item> = await get(path, { query: { ...query, cursor }, signal })
    yield page
    cursor = page.next_cursor
    if (cursor === null) return
  }
}
