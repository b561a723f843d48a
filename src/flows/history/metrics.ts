import { z } from 'zod'
import { durationField } from '../../kernel/fields.ts'
import type { TaskRecord } from './trace.ts'

export const flowMetricsSchema = z.strictObject({
  total_duration: durationField,
  parallelism_factor: z.number().describe('The sum of the durations of all leaves, divided by total_duration.'),
  worker_utilization: z.number().min(0).max(1),
  bottlenecks: z.array(
    z.strictObject({
      task_id: z.string(),
      duration: durationField,
      share: z.number().describe('The share of total_duration that the task took.'),
      blocks: z.array(z.string()).describe('The tasks that could not begin before this task had ended.'),
    }),
  ),
  recommendations: z.array(z.string()),
})
export type FlowMetrics = z.infer<typeof flowMetricsSchema>

export interface Measured {
  tasks: readonly TaskRecord[]
  startedAt: Date | null
  /** The end of the run, or the moment of the request. */
  until: Date
  /** Milliseconds, if the run has ended. */
  duration: number | null
  /** The most leaves under way at once, as given at the start of the run; null if none was given. */
  workers: number | null
}

const MOST_BOTTLENECKS = 5

export function metricsOf({ tasks, startedAt, until, duration, workers }: Measured): FlowMetrics {
  const total = duration ?? (startedAt ? Math.max(0, until.getTime() - startedAt.getTime()) : 0)
  const durations = new Map(tasks.map((task) => [task.id, durationOf(task, until)]))
  const sum = [...durations.values()].reduce((all, duration) => all + duration, 0)
  const peak = mostAtOnce(tasks, until)
  const places = workers ?? peak
  const facts = {
    total_duration: total,
    parallelism_factor: total === 0 ? 0 : rounded(sum / total),
    worker_utilization: total === 0 || places === 0 ? 0 : Math.min(1, rounded(sum / (total * places))),
    bottlenecks: bottlenecksOf(tasks, durations, total),
  }
  const path = criticalPath(tasks, until)
  return {
    ...facts,
    recommendations: recommend(facts, { tasks, durations, path, until, peak, workers, nameOf: namesOf(tasks) }),
  }
}

/** A task that is under way counts with its time so far; the time in which it waits for a person does not count. */
function durationOf({ status, busy, start_at, waited, waitingSince }: TaskRecord, until: Date): number {
  if (status !== 'running' || !start_at) return busy
  return Math.max(busy, (waitingSince ?? until).getTime() - Date.parse(start_at) - waited)
}

/** The time in which a task waited, up to now. */
const waitOf = ({ waited, waitingSince }: TaskRecord, until: Date): number =>
  waited + (waitingSince ? Math.max(0, until.getTime() - waitingSince.getTime()) : 0)

const rounded = (value: number): number => Math.round(value * 1_000) / 1_000

function mostAtOnce(tasks: readonly TaskRecord[], until: Date): number {
  const edges = tasks.flatMap(({ start_at, end_at }) =>
    start_at === null
      ? []
      : [
          { at: Date.parse(start_at), step: 1 },
          { at: end_at === null ? until.getTime() : Date.parse(end_at), step: -1 },
        ],
  )
  // Leaves do not overlap if one ends as the other begins. A leaf that took no time counts all the same.
  let [now, most] = [0, edges.length > 0 ? 1 : 0]
  for (const { step } of edges.toSorted((a, b) => a.at - b.at || a.step - b.step)) {
    now += step
    most = Math.max(most, now)
  }
  return most
}

function bottlenecksOf(
  tasks: readonly TaskRecord[],
  durations: ReadonlyMap<string, number>,
  total: number,
): FlowMetrics['bottlenecks'] {
  const followers = new Map<string, string[]>()
  for (const { id, depends_on } of tasks) {
    for (const earlier of depends_on) {
      const known = followers.get(earlier)
      if (known) known.push(id)
      else followers.set(earlier, [id])
    }
  }
  return [...durations]
    .filter(([, duration]) => duration > 0)
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, MOST_BOTTLENECKS)
    .map(([task_id, duration]) => ({
      task_id,
      duration,
      share: total === 0 ? 0 : Math.min(1, rounded(duration / total)),
      blocks: allAfter(task_id, followers),
    }))
}

function allAfter(leafId: string, followers: ReadonlyMap<string, readonly string[]>): string[] {
  const seen = new Set<string>([leafId])
  for (const id of seen) for (const next of followers.get(id) ?? []) seen.add(next)
  seen.delete(leafId)
  return [...seen]
}

/**
 * The tasks that the duration of the whole depends on: the task that ended last, the one of those it waited for that
 * ended last, and so on; the first one first.
 */
function criticalPath(tasks: readonly TaskRecord[], until: Date): TaskRecord[] {
  const byId = new Map(tasks.map((task) => [task.id, task]))
  const endOf = ({ end_at }: TaskRecord): number => (end_at === null ? until.getTime() : Date.parse(end_at))
  const lastOf = (candidates: readonly TaskRecord[]): TaskRecord | undefined =>
    candidates.reduce<TaskRecord | undefined>((last, task) => {
      if (task.start_at === null) return last
      return !last || endOf(task) > endOf(last) ? task : last
    }, undefined)
  const path = new Set<TaskRecord>()
  for (let task = lastOf(tasks); task && !path.has(task); ) {
    path.add(task)
    task = lastOf(task.depends_on.flatMap((id) => byId.get(id) ?? []))
  }
  return [...path].toReversed()
}

/** A longer path is named by its first and its last tasks. */
const MOST_NAMED = 10

function pathText(path: readonly TaskRecord[], nameOf: NameOf): string {
  const names = path.map(nameOf)
  const { length } = names
  if (length <= MOST_NAMED) return names.join(' → ')
  return [...names.slice(0, MOST_NAMED / 2), `${length - MOST_NAMED} more`, ...names.slice(-MOST_NAMED / 2)].join(' → ')
}

type NameOf = (task: Pick<TaskRecord, 'id' | 'name'>) => string

/** The name of a task as the console shows it. A name that several tasks have is followed by the id. */
function namesOf(tasks: readonly TaskRecord[]): NameOf {
  const counts = new Map<string, number>()
  for (const { name } of tasks) counts.set(name, (counts.get(name) ?? 0) + 1)
  return ({ id, name }) => (name === id || counts.get(name) === 1 ? name : `${name} (${id})`)
}

interface Advised {
  tasks: readonly TaskRecord[]
  durations: ReadonlyMap<string, number>
  path: readonly TaskRecord[]
  until: Date
  peak: number
  workers: number | null
  nameOf: NameOf
}

function recommend(facts: Omit<FlowMetrics, 'recommendations'>, advised: Advised): string[] {
  const { tasks, peak, workers, nameOf } = advised
  const said = advicePath(facts, advised)
  if (workers !== null && peak >= workers && tasks.length > workers && facts.worker_utilization >= 0.8) {
    said.push(`All ${workers} workers were busy while tasks waited: give the flow more workers.`)
  }
  if (workers !== null && workers > 1 && peak < workers) {
    said.push(`No more than ${peak} of ${workers} workers had work at once: fewer are enough.`)
  }
  const inTurn = tasks.filter((task) => task.depends_on.length > 0).length
  if (tasks.length > 2 && inTurn === tasks.length - 1 && facts.parallelism_factor <= 1.1 && peak <= 1) {
    said.push('Everything is done one after the other: put steps that do not need each other into a parallel node.')
  }
  const retried = tasks.filter((task) => task.attempts > 1).toSorted((a, b) => b.attempts - a.attempts)[0]
  if (retried)
    said.push(`${nameOf(retried)} took ${retried.attempts} attempts: see why it fails before it is tried again.`)
  return said
}

/** Only a task of the critical path is worth splitting, and a wait for a person cannot be split. */
function advicePath(
  { bottlenecks, total_duration: total }: Omit<FlowMetrics, 'recommendations'>,
  { tasks, durations, path, until, nameOf }: Advised,
): string[] {
  const said: string[] = []
  const onPath = new Map(path.map((task) => [task.id, task]))
  const slowest = bottlenecks.find(({ task_id }) => onPath.has(task_id))
  const slowestTask = slowest && onPath.get(slowest.task_id)
  if (slowestTask && tasks.length > 1 && slowest.share >= 0.5) {
    const { length } = slowest.blocks
    const held = length === 0 ? '' : ` and holds up ${length} ${length === 1 ? 'other' : 'others'}`
    said.push(
      `${nameOf(slowestTask)} takes ${percent(slowest.share)} of the time${held}: split it, or make it faster.${pathAround(path, nameOf)}`,
    )
  } else if (path.length > 1 && tasks.length > path.length) {
    const share = path.reduce((all, { id }) => all + (durations.get(id) ?? 0), 0) / Math.max(1, total)
    if (share >= 0.5) {
      said.push(
        `The critical path ${pathText(path, nameOf)} takes ${percent(Math.min(1, share))} of the time: only a faster task of it makes the flow faster.`,
      )
    }
  }
  const waits = path.map((task) => ({ task, ms: waitOf(task, until) })).toSorted((a, b) => b.ms - a.ms)
  const [longest] = waits
  if (longest && longest.ms >= total / 2 && longest.ms > 0) {
    const { awaited } = longest.task
    const share = percent(Math.min(1, longest.ms / Math.max(1, total)))
    said.push(
      awaited === undefined
        ? `${nameOf(longest.task)} waited for a person for ${share} of the time: an earlier answer makes the flow faster.${pathAround(path, nameOf)}`
        : `${nameOf(longest.task)} waited for ${awaited} for ${share} of the time.${pathAround(path, nameOf)}`,
    )
  }
  return said
}

const pathAround = (path: readonly TaskRecord[], nameOf: NameOf): string =>
  path.length > 1 ? ` The critical path is ${pathText(path, nameOf)}.` : ''

const percent = (share: number): string => `${Math.round(share * 100)} %`
