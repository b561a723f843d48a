// The times at which the evals of each project are advanced next, and the next search, all by `performance.now()`.
export interface ProjectSchedule {
  /** Plans a turn of the project after this many milliseconds. An earlier plan stays. */
  lookIn(projectId: string, inMs: number): void
  /** The due projects, one after the other. A planned project is due once. */
  due(): Generator<string>
  searchIn(inMs: number): void
  /** The same as `searchIn`, unless an earlier search is planned. */
  searchWithin(inMs: number): void
  isSearchDue(): boolean
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
