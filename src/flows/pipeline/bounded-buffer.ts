/** Between one who gives and one who takes, in order. Who gives holds a place before beginning, so it never overflows. */
export interface BoundedBuffer<Item> {
  /** Resolves when there is a free place, which is then held. */
  hold(): Promise<void>
  /** Fills a held place. */
  put(item: Item): void
  /** Gives a held place back: nothing came of it. */
  free(): void
  /** Nothing comes any more. */
  end(): void
  /** What is next, which stays until it is taken; null after the last. */
  next(): Promise<Item | null>
  take(): void
}

/** What is there from the beginning may be more than there are places: then nothing is added until it is less. */
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
