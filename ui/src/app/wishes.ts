// Something that opens on a wish from anywhere: a button, a key, a card. Its code is loaded at the first wish.
import { useSyncExternalStore } from 'react'

export interface Wishes {
  want: () => void
  /** How often it was wanted; 0 before the first time. */
  useCount: () => number
}

function createWishes(): Wishes {
  const listeners = new Set<() => void>()
  let count = 0
  const subscribe = (listener: () => void): (() => void) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }
  return {
    want: () => {
      count++
      for (const listener of listeners) listener()
    },
    useCount: () => useSyncExternalStore(subscribe, () => count),
  }
}

export const jump = createWishes()
export const tour = createWishes()
