// The slots for work under way in this process, counted by project. A part of them is kept for projects that have less
// than their share under way: otherwise one project's hanging work would hold every slot, and a newcomer would wait.

export interface Slots {
  free(): number
  /** The number of kept slots. */
  readonly kept: number
  /** Tells whether this project may take one more slot. */
  hasRoomFor(projectId: string): boolean
  /** The number of slots this project may take at once. */
  roomFor(projectId: string): number
  take(projectId: string): void
  release(projectId: string): void
  underWay(): { projectIds: string[]; counts: number[] }
}

/** A tenth, at least one; of fewer than four slots, none. */
export const keptOf = (count: number): number => (count < 4 ? 0 : Math.max(1, Math.floor(count / 10)))

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
    // As often as mayTake holds, one after the other.
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
