import { createSlots, type Slots } from '../queue/slots.ts'

/** How many function leaves this process works on at once, over all flows. */
export interface LeafSlots extends Slots {
  /** Called once, when there is room for this project again and it is this one's turn. */
  wait(whose: unknown, projectId: string, onRoom: () => void): void
  /** Waits no longer. If it was called, it was the last who could pass the room on. */
  leave(whose: unknown): void
  /** Whoever was called and has no use for the room lets the next one have it. */
  passOn(): void
}

export function createLeafSlots(count: number, onIdle: () => void = () => {}): LeafSlots {
  const slots = createSlots(count)
  const waiting = new Map<unknown, { projectId: string; onRoom: () => void }>()
  const passOn = (): void => {
    if (slots.free() === 0) return
    for (const [whose, { projectId, onRoom }] of waiting) {
      if (!slots.hasRoomFor(projectId)) continue
      waiting.delete(whose)
      onRoom()
      return
    }
    onIdle()
  }
  return {
    ...slots,
    release: (projectId) => {
      slots.release(projectId)
      passOn()
    },
    wait: (whose, projectId, onRoom) => void waiting.set(whose, { projectId, onRoom }),
    leave: (whose) => {
      waiting.delete(whose)
      passOn()
    },
    passOn,
  }
}
