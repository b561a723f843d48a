// When the evals of each project are looked at next, and when the next search for projects is. Times are those of
// `performance.now()`.
export interface ProjectSchedule {
  /** The project is looked at in so many milliseconds, or earlier where that was planned already. */
  lookIn(projectId: string, inMs: number): void
  /** The projects whose time has come, one after the other. A project is due once for each time that it was planned. */
  due(): Generator<string>
  searchIn(inMs: number): void
  /** As `searchIn`, unless a search is planned earlier. */
  searchWithin(inMs: number): void
  isSearchDue(): boolean
  /** The time until something is due. */
  waitMs(): number
}

export function createProjectSchedule(now: () => number = () => performance.now()): ProjectSchedule {
  /** The first search is due at once. */
  let searchAt = now()
  const projects = new Map<string, number>()
  return {
    lookIn: (projectId, inMs) => {
      const at = now() + inMs
      projects.set(projectId, Math.min(projects.get(projectId) ?? at, at))
    },
    due: function* () {
      for (const [projectId, at] of [...projects]) {
        if (at > now()) continue
        projects.delete(projectId)
        yield projectId
      }
    },
    searchIn: (inMs) => {
      searchAt = now() + inMs
    },
    searchWithin: (inMs) => {
      searchAt = Math.min(searchAt, now() + inMs)
    },
    isSearchDue: () => searchAt <= now(),
    waitMs: () => Math.max(0, Math.min(searchAt, ...projects.values()) - now()),
  }
}
