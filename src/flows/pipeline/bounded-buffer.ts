/** A queue between a giver and a taker. The giver holds a place before it makes an item, so there is no overflow. */
export interface BoundedBuffer<Item> {
  /** Resolves when there is a free place, which is then held. */
  hold(): Promise<void>
  put(item: Item): void
  /** Gives back a held place that no item will fill. */
  free(): void
  end(): void
  /** The next item, which stays until it is taken; null after the last. */
  next(): Promise<Item | null>
  take(): void
}

/** If there are more initial items than places, nothing is added until enough of them are taken. */
export function createBoundedBuffer<Item>(places: number, initial: readonly Item[] = []): BoundedBuffer<Item> {
  const items = [...initial]
  let held = 0
  let hasEnded = false
  let wakeGiver: (() => void) | null = null
  let wakeTaker: (() => void) | null = null

  const isFull = (): boolean => held + items.length >= places
  const onRoom = (): void => {
    if (!isFull()) wakeGiver?.()
  }
  return {
    hold: async () => {
      while (isFull()) {
        await new Promise<void>((resolve) => {
          wakeGiver = resolve
        })
      }
      held++
    },
    put: (item) => {
      held--
      items.push(item)
      wakeTaker?.()
    },
    free: () => {
      held--
      onRoom()
    },
    end: () => {
      hasEnded = true
      wakeTaker?.()
    },
    next: async () => {
      while (items.length === 0 && !hasEnded) {
        await new Promise<void>((resolve) => {
          wakeTaker = resolve
        })
      }
      return items[0] ?? null
    },
    take: () => {
      items.shift()
      onRoom()
    },
  }
}
