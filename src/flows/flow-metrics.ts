// Metrics of a flow run's time, from its tasks: the tasks it was spent on, the bottlenecks, and advice.
import { z } from 'zod'
import { durationField } from '../kernel/fields.ts'
import type { TaskRecord } from './trace.ts'

export const flowMetricsSchema = z.strictObject({
  total_duration: durationField,
  parallelism_factor: z.number().describe('The durations of all leaves by the duration of the whole.'),
  worker_utilization: z.number().min(0).max(1),
  bottlenecks: z.array(
    z.strictObject({
      task_id: z.string(),
      duration: durationField,
      share: z.number().describe('Of the duration of the whole.'),
      blocks: z.array(z.string()).describe('The tasks that could not begin before it had ended.'),
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
  /** In milliseconds, where the run has ended. */
  duration: number | null
  /** The most leaves under way at once, as the start of the run asked; null where it did not. */
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
  return { ...facts, recommendations: recommend(facts, { tasks, peak, workers }) }
}

/** A task that is under way counts with its time so far. */
function durationOf({ status, busy, start_at }: TaskRecord, until: Date): number {
  return status === 'running' && start_at ? Math.max(busy, until.getTime() - Date.parse(start_at)) : busy
}

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
  // Two leaves were not there together where one ends as the other begins; one that took no time was there all the
  // same.
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

function allAfter(taskId: string, followers: ReadonlyMap<string, readonly string[]>): string[] {
  const seen = new Set<string>([taskId])
  for (const id of seen) for (const next of followers.get(id) ?? []) seen.add(next)
  seen.delete(taskId)
  return [...seen]
}

function recommend(
  { bottlenecks, worker_utilization, parallelism_factor }: Omit<FlowMetrics, 'recommendations'>,
  { tasks, peak, workers }: { tasks: readonly TaskRecord[]; peak: number; workers: number | null },
): string[] {
  const [slowest] = bottlenecks
  const said: string[] = []
  if (slowest && tasks.length > 1 && slowest.share >= 0.5) {
    const { length } = slowest.blocks
    const held = length === 0 ? '' : ` and holds up ${length} ${length === 1 ? 'other' : 'others'}`
    said.push(
      `${slowest.task_id} takes ${Math.round(slowest.share * 100)} % of the time${held}: split it, or make it faster.`,
    )
  }
  if (workers !== null && peak >= workers && tasks.length > workers && worker_utilization >= 0.8) {
    said.push(`All ${workers} workers were busy while tasks waited: give the flow more workers.`)
  }
  if (workers !== null && workers > 1 && peak < workers) {
    said.push(`No more than ${peak} of ${workers} workers had work at once: fewer are enough.`)
  }
  const inTurn = tasks.filter((task) => task.depends_on.length > 0).length
  if (tasks.length > 2 && inTurn === tasks.length - 1 && parallelism_factor <= 1.1 && peak <= 1) {
    said.push('Everything is done one after the other: put steps that do not need each other into a parallel node.')
  }
  const retried = tasks.filter((task) => task.attempts > 1).toSorted((a, b) => b.attempts - a.attempts)[0]
  if (retried) said.push(`${retried.id} took ${retried.attempts} attempts: see why it fails before it is tried again.`)
  return said
}
