import { createSlots, type Slots } from '../../queue/slots.ts'

/** Limits the number of function leaves that this process works on at once, over all flows. */
export interface LeafSlots extends Slots {
  /** `onRoom` is called once, when there is room for this project again and it is this waiter's turn. */
  wait(whose: unknown, projectId: string, onRoom: () => void): void
  /** Stops waiting. A waiter that was called and leaves passes the room on to the next. */
  leave(whose: unknown): void
  /** Passes the room on to the next waiter, after a waiter was called and does not use the room. */
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
