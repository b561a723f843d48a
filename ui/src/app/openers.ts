// The jump dialog and the tour can be opened from any component. Their code is loaded at the first opening.
import { useSyncExternalStore } from 'react'

export interface Opener {
  open: () => void
  /** The number of openings so far. */
  useCount: () => number
}

function createOpener(): Opener {
  const listeners = new Set<() => void>()
  let count = 0
  const subscribe = (listener: () => void): (() => void) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }
  return {
    open: () => {
      count++
      for (const listener of listeners) listener()
    },
    useCount: () => useSyncExternalStore(subscribe, () => count),
  }
}

export const jump = createOpener()
export const tour = createOpener()
