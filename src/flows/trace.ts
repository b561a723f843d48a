// Tells from the journal alone what a flow run did and when: its tasks, their dependencies, and its events in order.
import { z } from 'zod'
import type { JournalEvent } from '../journal/read.ts'
import { instantField } from '../kernel/fields.ts'
import type { FlowNode } from '../kernel/flow.ts'
import { createPlaces, type Place } from './task-places.ts'

export const taskStatuses = ['pending', 'running', 'completed', 'failed', 'skipped'] as const

const usageSchema = z.strictObject({
  input_tokens: z.int(),
  output_tokens: z.int(),
  total_tokens: z.int(),
  estimated: z.boolean(),
  cost_usd: z.number().nullable(),
})
export type TaskUsage = z.infer<typeof usageSchema>

const tracedTaskSchema = z.strictObject({
  id: z.string(),
  name: z.string(),
  kind: z.enum(['agent', 'function']),
  parent_id: z.string().nullable().describe('The pattern around it.'),
  depends_on: z.array(z.string()).describe('The tasks that it waited for.'),
  worker: z.string().nullable(),
  status: z.enum(taskStatuses),
  attempts: z.int(),
  start_at: instantField.nullable(),
  end_at: instantField.nullable(),
  usage: usageSchema.nullable(),
})

export const flowTaskSchema = tracedTaskSchema.extend({ error: z.string().nullable() })
export type FlowTask = z.infer<typeof flowTaskSchema>

export const traceSchema = z.strictObject({
  tasks: z.array(tracedTaskSchema),
  timeline: z.array(z.strictObject({ at: instantField, event: z.string(), task_id: z.string().nullable() })),
})
export type Trace = z.infer<typeof traceSchema>

/** A task with the time it was worked on, all attempts together, in milliseconds. */
export interface TaskRecord extends FlowTask {
  busy: number
}

export interface Recorded {
  root: FlowNode
  hasEnded: boolean
  /** The events, oldest first. They need not hold inputs and results of tasks. */
  events: readonly JournalEvent[]
  /** The usage of agents, by task. */
  usage?: ReadonlyMap<string, TaskUsage>
}

/** More would be a graph that nobody reads; from there on a task names only the one that it waited for last. */
const MOST_DEPENDENCIES = 100_000

/** The tasks in the order in which they began, then those that have not. */
export function tasksOf({ root, hasEnded, events, usage }: Recorded): TaskRecord[] {
  const places = createPlaces(root)
  const tasks = new Map<string, TaskRecord>()
  const begunAt = new Map<string, Date>()
  /** The dependencies of a task, where the tree does not say. */
  const told = new Map<string, string[]>()
  const taskOf = (id: string, name: string): TaskRecord => {
    const known = tasks.get(id)
    if (known) return known
    const { kind, parentId } = places.placeOf(id)
    const task: TaskRecord = {
      ...{ id, name, kind, parent_id: parentId, depends_on: [], worker: null, status: 'pending', attempts: 0 },
      ...{ start_at: null, end_at: null, usage: usage?.get(id) ?? null, error: null, busy: 0 },
    }
    tasks.set(id, task)
    return task
  }
  for (const { kind, data, at } of events) {
    if (typeof data.task_id !== 'string' || !kind.startsWith('task.')) continue
    const task = taskOf(data.task_id, typeof data.name === 'string' ? data.name : data.task_id)
    if (typeof data.agent === 'string') {
      task.kind = 'agent'
      task.worker ??= data.agent
    }
    if (typeof data.worker === 'string') task.worker = data.worker
    if (Array.isArray(data.after)) told.set(task.id, data.after.map(String))
    tell(task, kind, data, at, begunAt)
  }
  for (const { id, name } of places.planned()) {
    if (!tasks.has(id)) taskOf(id, name).status = hasEnded ? 'skipped' : 'pending'
  }
  const all = [...tasks.values()]
  const dependencies = dependenciesOf(all, places.placeOf)
  for (const task of all) task.depends_on = told.get(task.id) ?? dependencies.get(task.id) ?? []
  return all
}

function tell(task: TaskRecord, kind: string, data: JournalEvent['data'], at: Date, begunAt: Map<string, Date>): void {
  if (kind === 'task.started') {
    begunAt.set(task.id, at)
    task.start_at ??= at.toISOString()
    task.end_at = null
    task.status = 'running'
    task.attempts = Math.max(task.attempts, Number(data.attempt) || 1)
    return
  }
  if (kind === 'task.slow') return
  const begun = begunAt.get(task.id)
  begunAt.delete(task.id)
  task.busy += begun ? Math.max(0, at.getTime() - begun.getTime()) : 0
  task.end_at = task.start_at === null ? null : at.toISOString()
  task.status = kind === 'task.completed' ? 'completed' : kind === 'task.failed' ? 'failed' : 'skipped'
  task.error = kind === 'task.failed' ? String(data.error) : null
}

export function traceOf(recorded: Recorded): Trace {
  return {
    tasks: tasksOf(recorded).map(({ error: _, busy: __, ...task }) => task),
    timeline: recorded.events.map(({ kind, data, at }) => ({
      at: at.toISOString(),
      event: kind,
      task_id: typeof data.task_id === 'string' ? data.task_id : null,
    })),
  }
}

interface Branch {
  turn: number
  children: Map<string, Branch>
  /** The same leaf in several attempts of the patterns around it. */
  tasks: { task: TaskRecord; life: string }[]
}

function dependenciesOf(tasks: readonly TaskRecord[], placeOf: (id: string) => Place): Map<string, string[]> {
  const root: Branch = { turn: 0, children: new Map(), tasks: [] }
  for (const task of tasks) {
    const { way, life } = placeOf(task.id)
    let at = root
    for (const { key, turn } of way) {
      const next = at.children.get(key) ?? { turn, children: new Map(), tasks: [] }
      at.children.set(key, next)
      at = next
    }
    at.tasks.push({ task, life })
  }
  const found = new Map<string, string[]>()
  // Thousands of tasks may wait for the same thousands.
  const known = new Map<Branch['tasks'], Map<string, { all: string[]; last: string[] }>>()
  let left = MOST_DEPENDENCIES
  link(root, [])
  return found

  function waits(before: Branch['tasks'], life: string): { all: string[]; last: string[] } {
    const byLife = known.get(before) ?? new Map()
    known.set(before, byLife)
    const tasks = byLife.has(life) ? [] : waitedFor(before, life)
    const fresh = () => ({ all: tasks.map((task) => task.id), last: tasks.length === 0 ? [] : [lastOf(tasks).id] })
    const answer = byLife.get(life) ?? fresh()
    byLife.set(life, answer)
    return answer
  }

  /** Answers the tasks that the next branch waits for. */
  function link(branch: Branch, before: Branch['tasks']): Branch['tasks'] {
    for (const { task, life } of branch.tasks) {
      const { all, last } = waits(before, life)
      const ids = left >= all.length ? all : last
      left -= ids.length
      found.set(task.id, ids)
    }
    let current = branch.tasks.length > 0 ? branch.tasks : before
    const turns = Map.groupBy(branch.children.values(), (child) => child.turn)
    for (const turn of [...turns.keys()].toSorted((a, b) => a - b)) {
      const earlier = current
      current = (turns.get(turn) ?? []).flatMap((child) => link(child, earlier))
    }
    return current
  }
}

/** The tasks of the same attempt; where that attempt failed, those of the attempt that completed. */
function waitedFor(before: Branch['tasks'], life: string): TaskRecord[] {
  const same = before.filter((each) => each.life === life)
  const isDone = ({ task }: Branch['tasks'][number]): boolean => task.status === 'completed'
  const chosen = same.length > 0 && (same.some(isDone) || !before.some(isDone)) ? same : before.filter(isDone)
  return (chosen.length > 0 ? chosen : before).map(({ task }) => task)
}

const lastOf = (tasks: readonly TaskRecord[]): TaskRecord =>
  tasks.reduce((last, task) => ((task.end_at ?? '') >= (last.end_at ?? '') ? task : last))
