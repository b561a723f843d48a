// The slots for work under way in this process. Some are kept for projects with less than their share under way:
// otherwise one project's hanging work would hold every slot.

export interface Slots {
  free(): number
  readonly kept: number
  hasRoomFor(projectId: string): boolean
  /** The number of slots this project may take at once. */
  roomFor(projectId: string): number
  take(projectId: string): void
  release(projectId: string): void
  underWay(): { projectIds: string[]; counts: number[] }
}

/** A fifth of the slots is kept, at least one; of fewer than four slots none is kept. */
export const keptOf = (count: number): number => (count < 4 ? 0 : Math.max(1, Math.floor(count / 5)))

export function createSlots(count: number): Slots {
  const kept = keptOf(count)
  const counts = new Map<string, number>()
  let used = 0
  const ownOf = (projectId: string): number => counts.get(projectId) ?? 0
  /** A kept slot goes to a project that has fewer slots than are free, so the project leaves as many as it takes. */
  const mayTake = (own: number, free: number): boolean => free > kept || (free > 0 && own < free)
  const free = (): number => Math.max(0, count - used)
  return {
    kept,
    free,
    hasRoomFor: (projectId) => mayTake(ownOf(projectId), free()),
    // The number of times that mayTake holds, one slot after the other.
    roomFor: (projectId) => Math.max(0, free() - kept, Math.ceil((free() - ownOf(projectId)) / 2)),
    take: (projectId) => {
      used++
      counts.set(projectId, ownOf(projectId) + 1)
    },
    release: (projectId) => {
      used--
      const left = ownOf(projectId) - 1
      if (left > 0) counts.set(projectId, left)
      else counts.delete(projectId)
    },
    underWay: () => ({ projectIds: [...counts.keys()], counts: [...counts.values()] }),
  }
}
