import type { InfiniteData, UseInfiniteQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import type { Page } from '../api/client.ts'
import { More } from './more.tsx'
import { Empty, Failure, Loading, Stale } from './states.tsx'

interface Props<Item> {
  of: UseInfiniteQueryResult<InfiniteData<Page<Item>>>
  /** The things as the middle of a sentence: "keys". */
  what: string
  empty: ReactNode
  children: (items: Item[]) => ReactNode
}

/** A list that is read page by page, in all its states. */
export function PagedList<Item>({ of: list, what, empty, children }: Props<Item>) {
  const again = (): void => void list.refetch()
  if (list.isPending) return <Loading />
  if (!list.data) return <Failure what={`The ${what} could not be read.`} error={list.error} onRetry={again} />
  const items = list.data.pages.flatMap((page) => page.items)
  return (
    <>
      {list.isError && <Stale onRetry={again} />}
      {items.length === 0 ? <Empty>{empty}</Empty> : children(items)}
      <More list={list} />
    </>
  )
}
