// The tasks of one flow run: the snapshot that the API gave, and the events that came after it. Each row has its own
// subscribers, so that an event draws one row again and not the page. Events may come twice, and a snapshot may be older
// than an event: the stage of a task tells which of two states is the later one.

import type { FlowTask, FlowTrace } from '../../api/flow-trace.ts'
import type { StreamEvent } from '../../api/follow.ts'

export interface TaskRow extends FlowTask {
  /** Grows when the task begins or ends. */
  stage: number
  /** The runs of the task, and below it, that wait for a person. */
  waitingRuns: readonly string[]
  /** The mark of the store at the last event about a wait. */
  waitMark: number
}

export const shownStatuses = ['completed', 'running', 'blocked', 'failed', 'skipped', 'pending'] as const
export type ShownStatus = (typeof shownStatuses)[number]

export const shownStatus = ({ status, waitingRuns }: TaskRow): ShownStatus =>
  status === 'running' && waitingRuns.length > 0 ? 'blocked' : status

export interface Totals {
  counts: Readonly<Record<ShownStatus, number>>
  all: number
  /** Milliseconds of the tasks that have ended. */
  workedMs: number
  /** The sum of the starts of the tasks under way: their time so far at t is `underWay * t - startSum`. */
  startSum: number
  underWay: number
}

export interface FlowStore {
  /** A number that grows with each event about a wait. */
  mark(): number
  /** `since` is the mark before the snapshot was asked for: events about waits that came later are kept. */
  load(trace: FlowTrace, since: number): void
  apply(event: StreamEvent): void
  task(id: string): TaskRow | undefined
  tasks(): Iterable<TaskRow>
  /** The ids in the order in which they became known. A row never changes its place. */
  order(): readonly string[]
  totals(): Totals
  /** A counter that grows when a task is added, or when a task's parent or dependencies change. */
  structure(): number
  onTask(id: string, listener: () => void): () => void
  onOrder(listener: () => void): () => void
  onTotals(listener: () => void): () => void
}

export interface FlowStoreOptions {
  /** Calls back before the next frame is drawn. */
  nextFrame: (flush: () => void) => void
  /** Calls back when the totals are to be counted again. */
  later: (flush: () => void) => void
}

export function createFlowStore({ nextFrame, later }: FlowStoreOptions): FlowStore {
  const rows = new Map<string, TaskRow>()
  const onRow = new Map<string, Set<() => void>>()
  const onOrder = new Set<() => void>()
  const onTotals = new Set<() => void>()
  const changed = new Set<string>()
  let order: readonly string[] = []
  let structure = 0
  let totals = countTotals([])
  let hasNew = false
  let isFlushing = false
  let isCounting = false
  let mark = 0

  function flush(): void {
    isFlushing = false
    if (hasNew) {
      order = [...rows.keys()]
      structure++
      hasNew = false
      for (const listener of onOrder) listener()
    }
    for (const id of changed) for (const listener of onRow.get(id) ?? []) listener()
    changed.clear()
  }

  function count(): void {
    isCounting = false
    totals = countTotals(rows.values())
    for (const listener of onTotals) listener()
  }

  function put(row: TaskRow): void {
    const known = rows.get(row.id)
    if (known && isSame(known, row)) return
    if (known?.parent_id !== row.parent_id || known.depends_on.length !== row.depends_on.length) hasNew = true
    rows.set(row.id, row)
    changed.add(row.id)
    if (!isFlushing) nextFrame(flush)
    if (!isCounting) later(count)
    isFlushing = isCounting = true
  }

  return {
    mark: () => mark,
    load: (trace, since) => {
      const waiting = waitingIn(trace)
      for (const task of trace.tasks) put(merged(rows.get(task.id), task, waiting.get(task.id) ?? NOBODY, since))
    },
    apply: (event) => {
      const next = afterEvent((id) => rows.get(id), event, mark + 1)
      if (!next) return
      mark = Math.max(mark, next.waitMark)
      put(next)
    },
    task: (id) => rows.get(id),
    tasks: () => rows.values(),
    order: () => order,
    totals: () => totals,
    structure: () => structure,
    onTask: (id, listener) => {
      const listeners = onRow.get(id) ?? new Set()
      onRow.set(id, listeners.add(listener))
      return () => {
        listeners.delete(listener)
        if (listeners.size === 0 && onRow.get(id) === listeners) onRow.delete(id)
      }
    },
    onOrder: (listener) => listenTo(onOrder, listener),
    onTotals: (listener) => listenTo(onTotals, listener),
  }
}

function listenTo(listeners: Set<() => void>, listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

function countTotals(rows: Iterable<TaskRow>): Totals {
  const counts = { completed: 0, running: 0, blocked: 0, failed: 0, skipped: 0, pending: 0 }
  let [all, workedMs, startSum, underWay] = [0, 0, 0, 0]
  for (const row of rows) {
    all++
    counts[shownStatus(row)]++
    if (row.start_at === null) continue
    if (row.end_at !== null) workedMs += Date.parse(row.end_at) - Date.parse(row.start_at)
    else if (row.status === 'running') {
      underWay++
      startSum += Date.parse(row.start_at)
    }
  }
  return { counts, all, workedMs, startSum, underWay }
}

/** A snapshot that is older than the events keeps the state, and gives the facts that no event tells. */
function merged(known: TaskRow | undefined, task: FlowTask, waiting: readonly string[], since: number): TaskRow {
  const stage = stageOf(task.status, task.attempts)
  if (!known || known.stage <= stage) {
    const isOlder = known?.stage === stage && known.waitMark > since
    const waitingRuns = isOlder ? known.waitingRuns : task.status === 'running' ? waiting : NOBODY
    return { ...task, stage, waitingRuns, waitMark: known?.waitMark ?? 0 }
  }
  const { kind, parent_id, depends_on, usage, run_id, worker } = task
  return {
    ...known,
    kind,
    parent_id,
    depends_on,
    usage: usage ?? known.usage,
    run_id: run_id ?? known.run_id,
    worker: known.worker ?? worker,
  }
}

const NOBODY: readonly string[] = []

const STATUS_AFTER: Readonly<Record<string, FlowTask['status']>> = {
  'task.started': 'running',
  'task.completed': 'completed',
  'task.failed': 'failed',
  'task.skipped': 'skipped',
}

interface TaskEvent {
  task_id: string
  at: string
  name?: string
  attempt?: number
  agent?: string
  worker?: string
  after?: string[]
  error?: string
  run_id?: string
}

/** The row after the event, or null if it tells nothing new. */
function afterEvent(
  find: (id: string) => TaskRow | undefined,
  { event, data }: StreamEvent,
  waitMark: number,
): TaskRow | null {
  if (!event.startsWith('task.')) return null
  const told = JSON.parse(data) as TaskEvent // as in kernel/flow-run.ts
  const known = find(told.task_id)
  if (event === 'task.waiting' || event === 'task.continued') {
    if (known?.status !== 'running') return null
    const others = known.waitingRuns.filter((id) => id !== told.run_id)
    return { ...known, waitMark, waitingRuns: event === 'task.waiting' ? [...others, told.run_id ?? ''] : others }
  }
  const status = STATUS_AFTER[event]
  if (status === undefined) return null
  const row = known ?? unknownTask(told)
  const attempts = Math.max(row.attempts, told.attempt ?? 0)
  const stage = stageOf(status, told.attempt ?? attempts)
  if (stage <= row.stage && known) return null
  const hasBegun = status === 'running' || row.start_at !== null
  return {
    ...row,
    stage,
    status,
    attempts,
    waitingRuns: NOBODY,
    kind: told.agent === undefined ? row.kind : 'agent',
    worker: told.worker ?? row.worker ?? told.agent ?? null,
    depends_on: told.after ?? row.depends_on,
    start_at: row.start_at ?? (status === 'running' ? told.at : null),
    end_at: status === 'running' || !hasBegun ? null : told.at,
    error: status === 'failed' ? (told.error ?? null) : null,
  }
}

const unknownTask = ({ task_id: id, name, agent, after }: TaskEvent): TaskRow => ({
  id,
  name: name ?? id,
  kind: agent === undefined ? 'function' : 'agent',
  parent_id: null,
  depends_on: after ?? [],
  worker: null,
  status: 'pending',
  attempts: 0,
  start_at: null,
  end_at: null,
  usage: null,
  run_id: null,
  error: null,
  stage: -1,
  waitingRuns: NOBODY,
  waitMark: 0,
})

/** A skipped task is not tried again. */
function stageOf(status: FlowTask['status'], attempt: number): number {
  if (status === 'pending') return 0
  if (status === 'skipped') return Number.POSITIVE_INFINITY
  return 2 * Math.max(1, attempt) + (status === 'running' ? 0 : 1)
}

/** The runs that wait, for each task with any. */
function waitingIn({ timeline }: FlowTrace): Map<string, string[]> {
  const waiting = new Map<string, string[]>()
  for (const { event, task_id: id, run_id: runId = '' } of timeline) {
    if (id === null) continue
    const others = (): string[] => (waiting.get(id) ?? NOBODY).filter((other) => other !== runId)
    if (event === 'task.waiting') waiting.set(id, [...others(), runId])
    else if (event === 'task.continued') waiting.set(id, others())
    else if (STATUS_AFTER[event]) waiting.delete(id)
  }
  return waiting
}

const COMPARED = ['stage', 'start_at', 'end_at', 'run_id', 'parent_id', 'worker', 'kind'] as const

const isSame = (a: TaskRow, b: TaskRow): boolean =>
  COMPARED.every((field) => a[field] === b[field]) &&
  a.usage?.total_tokens === b.usage?.total_tokens &&
  a.waitMark === b.waitMark &&
  a.waitingRuns.join() === b.waitingRuns.join() &&
  a.depends_on.length === b.depends_on.length
