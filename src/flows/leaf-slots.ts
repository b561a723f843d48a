/** How many function leaves this process works on at once, over all flows. */
export interface LeafSlots {
  free(): number
  take(): void
  release(): void
  /** Called once, when there is room again and it is this one's turn. */
  wait(whose: unknown, onRoom: () => void): void
  /** Waits no longer. If it was called, it was the last who could pass the room on. */
  leave(whose: unknown): void
  /** Whoever was called and has no use for the room lets the next one have it. */
  passOn(): void
}

export function createLeafSlots(count: number, onIdle: () => void = () => {}): LeafSlots {
  let used = 0
  const waiting = new Map<unknown, () => void>()
  const passOn = (): void => {
    const [next] = waiting
    if (used >= count) return
    if (next) {
      waiting.delete(next[0])
      next[1]()
    } else onIdle()
  }
  return {
    free: () => Math.max(0, count - used),
    take: () => void used++,
    release: () => {
      used--
      passOn()
    },
    wait: (whose, onRoom) => void waiting.set(whose, onRoom),
    leave: (whose) => {
      waiting.delete(whose)
      passOn()
    },
    passOn,
  }
}
