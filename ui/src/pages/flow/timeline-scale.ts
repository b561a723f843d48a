// The numbers behind the timeline and the graph. Instants are milliseconds.
import type { FlowRun } from '../../../../src/kernel/flow-run.ts'
import type { TaskRow } from './flow-store.ts'

export interface Span {
  from: number
  to: number
}

type Times = Pick<FlowRun, 'created_at' | 'started_at' | 'completed_at'>

export const beginOf = (run: Times): number => Date.parse(run.started_at ?? run.created_at)

/** The time that is shown: all of it, or the last part. */
export function spanOf(run: Times, windowMs: number | null, now: number): Span {
  const to = Math.max(beginOf(run) + 1_000, run.completed_at === null ? now : Date.parse(run.completed_at))
  return { from: windowMs === null ? beginOf(run) : Math.max(beginOf(run), to - windowMs), to }
}

const STEPS_MS = [100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000]
const HOUR_MS = 3_600_000
const MOST_TICKS = 6

/** Round distances from the start that lie within the span. */
export function ticksOf({ from, to }: Span, startedAt: number): number[] {
  const span = Math.max(1, to - from)
  const step = STEPS_MS.find((each) => span / each <= MOST_TICKS) ?? HOUR_MS * Math.ceil(span / HOUR_MS / MOST_TICKS)
  const first = Math.max(1, Math.ceil((from - startedAt) / step))
  const ticks: number[] = []
  for (let place = first; startedAt + place * step < to; place++) ticks.push(place * step)
  return ticks
}

/** The number of tasks under way in each of equal parts of the span. */
export function busyIn(tasks: Iterable<TaskRow>, { from, to }: Span, parts: number): number[] {
  const width = Math.max(1, to - from) / parts
  const steps = new Array<number>(parts + 1).fill(0)
  const partOf = (instant: number): number => Math.min(parts, Math.max(0, Math.floor((instant - from) / width)))
  for (const { start_at, end_at } of tasks) {
    if (start_at === null) continue
    const start = Date.parse(start_at)
    const end = end_at === null ? to : Date.parse(end_at)
    if (end < from || start > to) continue
    const first = partOf(start)
    const last = Math.max(first + 1, partOf(end))
    steps[first] = (steps[first] ?? 0) + 1
    if (last <= parts) steps[last] = (steps[last] ?? 0) - 1
  }
  let now = 0
  return steps.slice(0, parts).map((step) => (now += step))
}

/**
 * The tasks that the duration of the whole depends on: the one that ended last, the one of those it waited for that
 * ended last, and so on.
 */
export function criticalPath(tasks: Iterable<TaskRow>): Set<string> {
  const byId = new Map<string, TaskRow>()
  for (const task of tasks) byId.set(task.id, task)
  const endOf = ({ end_at }: TaskRow): number => (end_at === null ? Number.POSITIVE_INFINITY : Date.parse(end_at))
  const lastOf = (candidates: Iterable<TaskRow>): TaskRow | undefined => {
    let last: TaskRow | undefined
    for (const task of candidates) {
      if (task.start_at !== null && (!last || endOf(task) > endOf(last))) last = task
    }
    return last
  }
  const path = new Set<string>()
  for (let task = lastOf(byId.values()); task && !path.has(task.id); ) {
    path.add(task.id)
    task = lastOf(task.depends_on.flatMap((id) => byId.get(id) ?? []))
  }
  return path
}

/** The tasks that depend on this one directly. */
export function waitingFor(tasks: Iterable<TaskRow>, taskId: string): TaskRow[] {
  return [...tasks].filter(({ depends_on }) => depends_on.includes(taskId))
}

export type TimelineRow = { type: 'group'; id: string; ids: readonly string[] } | { type: 'task'; id: string }

/** The rows under the patterns around them, if there are several such patterns. */
export function groupRows(
  ids: readonly string[],
  parentOf: (id: string) => string | null,
  closed: ReadonlySet<string>,
): TimelineRow[] {
  const groups = Map.groupBy(ids, (id) => parentOf(id) ?? '')
  const isFlat = groups.size < 2 || groups.size > ids.length / 2
  if (isFlat) return ids.map((id) => ({ type: 'task', id }))
  return [...groups].flatMap(([id, members]): TimelineRow[] => [
    { type: 'group', id, ids: members },
    ...(closed.has(id) ? [] : members.map((member): TimelineRow => ({ type: 'task', id: member }))),
  ])
}
