// Tells from the journal alone the tasks of a flow run: their times, their dependencies, and the events in order.
import { z } from 'zod'
import type { JournalEvent } from '../../journal/read.ts'
import { idField, instantField } from '../../kernel/fields.ts'
import type { FlowNode } from '../../kernel/flow.ts'
import { usageSchema } from '../../kernel/run.ts'
import { createPlaces, type Place } from '../machine/leaf-places.ts'
import type { Patterns } from '../machine/pattern.ts'

export const leafStatuses = ['pending', 'running', 'completed', 'failed', 'skipped'] as const

export type TaskUsage = z.infer<typeof usageSchema>

const skippedItemSchema = z.strictObject({
  index: z.int().describe('The place of the item in the source, from 0.'),
  stage: z.union([z.string(), z.int()]).describe('The id of the stage that gave the item up, else its place, from 0.'),
  error: z.string(),
})
export type SkippedItem = z.infer<typeof skippedItemSchema>

export const flowTaskSchema = z.strictObject({
  id: z.string(),
  name: z.string(),
  kind: z.enum(['agent', 'function']),
  parent_id: z.string().nullable().describe('The pattern around the task.'),
  depends_on: z.array(z.string()).describe('The tasks that this task waited for.'),
  worker: z.string().nullable(),
  status: z.enum(leafStatuses),
  attempts: z.int(),
  start_at: instantField.nullable(),
  end_at: instantField.nullable(),
  usage: usageSchema
    .nullable()
    .describe('Of all attempts, sub-runs included; null for a function that called no model.'),
  run_id: idField.nullable().describe('The run of the latest attempt; the newest if an attempt has several.'),
  error: z
    .string()
    .nullable()
    .describe('Of an agent whose run has paused: the reason of the pause, and the summary of the run.'),
  skipped: z.array(skippedItemSchema).optional().describe('Of a pipeline: its first 100 skipped items.'),
})
export type FlowTask = z.infer<typeof flowTaskSchema>

export const traceSchema = z.strictObject({
  tasks: z.array(flowTaskSchema),
  timeline: z.array(
    z.strictObject({
      at: instantField,
      event: z.string(),
      task_id: z.string().nullable(),
      run_id: idField
        .optional()
        .describe(
          'Of task.waiting and task.continued: the run that waits, or continues; of a function that asks a model, the wait.',
        ),
    }),
  ),
})
export type Trace = z.infer<typeof traceSchema>

/** A task with its times, all attempts together, in milliseconds. */
export interface TaskRecord extends FlowTask {
  /** The time it was worked on, up to the end of the last attempt that has ended; without waits for people. */
  busy: number
  /** The time it waited for a person, up to the last answer. */
  waited: number
  /** Set while it waits for a person. */
  waitingSince: Date | null
  /** The thing it waited for last, if it was not a person: `provider openai`. */
  awaited?: string
  /** The stages of a pipeline: the id of each, else its place. */
  stages?: readonly (string | number)[]
}

export const toFlowTask = ({
  busy: _,
  waited: __,
  waitingSince: ___,
  awaited: ____,
  stages: _____,
  ...task
}: TaskRecord): FlowTask => task

export interface RecordedRun {
  root: FlowNode
  patterns: Patterns
  hasEnded: boolean
  /** The events, oldest first. They need not hold inputs and results of tasks. */
  events: readonly JournalEvent[]
  /** The newest run and the usage of each task that has any. */
  runs?: ReadonlyMap<string, LeafRun>
}

export interface LeafRun {
  run_id: string | null
  usage: TaskUsage
}

/** The most dependencies of a trace. Beyond it a task names only the task that it waited for last. */
const MOST_DEPENDENCIES = 100_000

/** The tasks in the order in which they began, then the tasks that have not begun. */
export function tasksOf({ root, patterns, hasEnded, events, runs }: RecordedRun): TaskRecord[] {
  const places = createPlaces(root, patterns)
  const tasks = new Map<string, TaskRecord>()
  const lives = new Map<string, Life>()
  /** The dependencies of a task, if the tree does not tell them. */
  const told = new Map<string, string[]>()
  const taskOf = (id: string, name: string): TaskRecord => {
    const known = tasks.get(id)
    if (known) return known
    const { kind, parentId, node } = places.placeOf(id)
    const stages =
      node &&
      patterns
        .of(node)
        ?.stream?.(node)
        .stages.map((stage, place) => stage.id ?? place)
    const task: TaskRecord = {
      id,
      name,
      kind,
      parent_id: parentId,
      depends_on: [],
      worker: null,
      status: 'pending',
      attempts: 0,
      start_at: null,
      end_at: null,
      usage: runs?.get(id)?.usage ?? null,
      run_id: runs?.get(id)?.run_id ?? null,
      error: null,
      busy: 0,
      waited: 0,
      waitingSince: null,
      ...(stages ? { stages } : {}),
    }
    tasks.set(id, task)
    return task
  }
  const planned = new Map(places.planned().map(({ id, name }) => [id, name]))
  for (const { kind, data, at } of events) {
    if (typeof data.task_id !== 'string' || !kind.startsWith('task.')) continue
    // A task that is skipped without having begun is named by the tree alone.
    const task = taskOf(
      data.task_id,
      typeof data.name === 'string' ? data.name : (planned.get(data.task_id) ?? data.task_id),
    )
    if (typeof data.agent === 'string') {
      task.kind = 'agent'
      task.worker ??= data.agent
    }
    if (typeof data.worker === 'string') task.worker = data.worker
    if (Array.isArray(data.after)) told.set(task.id, data.after.map(String))
    tell(task, kind, data, at, lives)
  }
  for (const [id, name] of planned) {
    if (!tasks.has(id)) taskOf(id, name).status = hasEnded ? 'skipped' : 'pending'
  }
  const all = [...tasks.values()]
  const dependencies = dependenciesOf(all, places.placeOf)
  for (const task of all) task.depends_on = told.get(task.id) ?? dependencies.get(task.id) ?? []
  return all
}

interface Life {
  begunAt: Date
  waitedBefore: number
  /** Its runs, and the runs below them, that wait for a person. */
  waiting: Set<string>
}

function tell(task: TaskRecord, kind: string, data: JournalEvent['data'], at: Date, lives: Map<string, Life>): void {
  const life = lives.get(task.id)
  if (kind === 'task.started') {
    lives.set(task.id, { begunAt: at, waitedBefore: task.waited, waiting: new Set() })
    task.start_at ??= at.toISOString()
    task.end_at = null
    task.status = 'running'
    task.attempts = Math.max(task.attempts, Number(data.attempt) || 1)
    return
  }
  if (kind === 'task.slow') return
  if (isWait(kind)) {
    if (kind === 'task.waiting' && typeof data.waiting_for === 'string' && /^(provider|tool) /.test(data.waiting_for))
      task.awaited = data.waiting_for
    if (life) tellWait(task, life, { isWaiting: kind === 'task.waiting', runId: String(data.run_id), at })
    return
  }
  lives.delete(task.id)
  endWait(task, at)
  const waited = task.waited - (life?.waitedBefore ?? 0)
  task.busy += life ? Math.max(0, at.getTime() - life.begunAt.getTime() - waited) : 0
  task.end_at = task.start_at === null ? null : at.toISOString()
  task.status = kind === 'task.completed' ? 'completed' : kind === 'task.failed' ? 'failed' : 'skipped'
  task.error = kind === 'task.failed' ? String(data.error) : null
}

const isWait = (kind: string): boolean => kind === 'task.waiting' || kind === 'task.continued'

interface Wait {
  isWaiting: boolean
  runId: string
  at: Date
}

function tellWait(task: TaskRecord, life: Life, { isWaiting, runId, at }: Wait): void {
  if (isWaiting) life.waiting.add(runId)
  else life.waiting.delete(runId)
  if (life.waiting.size === 0) endWait(task, at)
  else task.waitingSince ??= at
}

function endWait(task: TaskRecord, at: Date): void {
  if (task.waitingSince) task.waited += Math.max(0, at.getTime() - task.waitingSince.getTime())
  task.waitingSince = null
}

export function traceOf(recorded: RecordedRun): Trace {
  return {
    tasks: tasksOf(recorded).map(toFlowTask),
    timeline: recorded.events.map(({ kind, data, at }) => ({
      at: at.toISOString(),
      event: kind,
      task_id: typeof data.task_id === 'string' ? data.task_id : null,
      ...(isWait(kind) && typeof data.run_id === 'string' ? { run_id: data.run_id } : {}),
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
  // The answers are kept, because thousands of tasks may wait for the same thousands.
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

  /** Returns the tasks that the next branch waits for. */
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

/** The tasks of the same attempt; if that attempt failed, the tasks of the attempt that completed. */
function waitedFor(before: Branch['tasks'], life: string): TaskRecord[] {
  const same = before.filter((each) => each.life === life)
  const isDone = ({ task }: Branch['tasks'][number]): boolean => task.status === 'completed'
  const chosen = same.length > 0 && (same.some(isDone) || !before.some(isDone)) ? same : before.filter(isDone)
  return (chosen.length > 0 ? chosen : before).map(({ task }) => task)
}

const lastOf = (tasks: readonly TaskRecord[]): TaskRecord =>
  tasks.reduce((last, task) => ((task.end_at ?? '') >= (last.end_at ?? '') ? task : last))
