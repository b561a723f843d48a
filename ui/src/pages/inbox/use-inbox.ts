// The rows of the inbox: open things, and those that were decided since the page was opened, each in its place.
import { keepPreviousData, useQueries, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { Task } from '../../../../src/kernel/task.ts'
import { taskQuery, waitingQuery } from '../../api/inbox.ts'
import { isTaskOver } from '../../api/task-words.ts'
import { keepPlaces } from './keep-places.ts'

export interface Entry {
  task: Task
  isOpen: boolean
}

interface Kept {
  from: readonly Task[] | undefined
  tasks: Task[]
}

/** `wanted` is the id in the address: it is shown although it waits no more. `settled` are the ids decided here. */
export function useInbox(projectId: string, wanted: string | undefined, settled: ReadonlySet<string>) {
  const [pages, setPages] = useState(1)
  const [kept, setKept] = useState<Kept>({ from: undefined, tasks: [] })
  const waiting = useQuery({ ...waitingQuery(projectId, pages), placeholderData: keepPreviousData })
  const items = waiting.data?.items
  if (items !== kept.from) setKept({ from: items, tasks: keepPlaces(kept.tasks, items ?? []) })

  const isWaiting = new Set(items?.map(({ id }) => id))
  const isAsked = wanted !== undefined && items !== undefined && !kept.tasks.some(({ id }) => id === wanted)
  const gone = kept.tasks.filter(({ id }) => settled.has(id) || !isWaiting.has(id)).map(({ id }) => id)
  const fates = useQueries({ queries: gone.map((id) => taskQuery(projectId, id)) })
  const asked = useQuery({ ...taskQuery(projectId, wanted ?? ''), enabled: isAsked })

  const fateOf = new Map(fates.flatMap(({ data }) => (data ? [[data.id, data] as const] : [])))
  const tasks = kept.tasks.map((task) => fateOf.get(task.id) ?? task)
  const all = isAsked && asked.data ? [asked.data, ...tasks] : tasks
  const entries = all.map((task): Entry => ({ task, isOpen: !isTaskOver(task) }))
  return {
    entries,
    query: waiting,
    hasMore: waiting.data?.hasMore ?? false,
    more: () => setPages((current) => current + 1),
    isUnknown: isAsked && asked.isError,
  }
}
