// The views that components have of the store: each follows only its part.
import { createContext, use, useCallback, useMemo, useSyncExternalStore } from 'react'
import { type FlowStore, shownStatus, type TaskRow, type Totals } from './flow-store.ts'

export const StoreContext = createContext<FlowStore | null>(null)

export function useFlowStore(): FlowStore {
  const store = use(StoreContext)
  if (!store) throw new Error('useFlowStore is called outside of a flow page')
  return store
}

export function useTask(id: string): TaskRow | undefined {
  const store = useFlowStore()
  const subscribe = useCallback((listener: () => void) => store.onTask(id, listener), [store, id])
  return useSyncExternalStore(subscribe, () => store.task(id))
}

export function useTotals(): Totals {
  const store = useFlowStore()
  return useSyncExternalStore(store.onTotals, store.totals)
}

export function useOrder(): readonly string[] {
  const store = useFlowStore()
  return useSyncExternalStore(store.onOrder, store.order)
}

export function useStructure(): number {
  const store = useFlowStore()
  return useSyncExternalStore(store.onOrder, store.structure)
}

const never = (): (() => void) => () => {}

/** The ids of the tasks with this status, or of all. Without a status only a new task changes the list. */
export function useShownIds(status: string | undefined): readonly string[] {
  const store = useFlowStore()
  const order = useOrder()
  const totals = useSyncExternalStore(status === undefined ? never : store.onTotals, store.totals)
  // biome-ignore lint/correctness/useExhaustiveDependencies: new totals mean that a status may have changed
  return useMemo(() => {
    if (status === undefined) return order
    return order.filter((id) => {
      const task = store.task(id)
      return task && shownStatus(task) === status
    })
  }, [store, order, status, status === undefined ? null : totals])
}
