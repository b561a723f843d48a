// A pool deals tasks to queues, one for each worker or one hub for all. Its topology says from which queues
// a worker takes its tasks:
//   hierarchical  each from its own queue, nothing is handed over
//   mesh          from its own, then from the far end of the longest other
//   star          all from the hub
//   custom        as mesh, along the edges: by [from, to], `to` may take from `from`
// The pool calls nothing and waits for nothing; its owner says when a worker is free, has finished, or is gone.
import type { Topology } from '../kernel/flow.ts'
import { createDealing } from './pool-dealing.ts'
import { createPoolMeasures } from './pool-measures.ts'
import { findOverload, type Overload } from './pool-overload.ts'
import type { Handover, PoolState, Switch } from './pool-state.ts'
import { type Entry, noteDuration } from './pool-workers.ts'

export interface WorkPoolOptions {
  workers: readonly string[]
  topology: Topology
  edges?: readonly (readonly [from: string, to: string])[] | undefined
  /** An idle worker may take tasks that wait for another, where the topology lets it. */
  stealing?: boolean | undefined
  overload?: { queueLength: number } | undefined
  maySwitch: boolean
  /** Milliseconds. */
  now: () => number
}

export interface WorkPool<Task extends { id: string }> {
  /** A task that waits or runs already is not added again; a task that is done may be, for another attempt. */
  add(tasks: Iterable<Task>): void
  /** The worker's next task. Null: the worker is busy or gone, or there is no task that it may take. */
  next(worker: string): { task: Task; handover: Handover | null } | null
  /** The worker has had the task since before the pool was made. False: the worker is unknown, or has another task. */
  resume(worker: string, task: Task): boolean
  /** The workers that have nothing to do, in their order. */
  idle(): string[]
  waiting(): number
  /** False: the task is not that worker's (any more), and is ignored. */
  done(worker: string, taskId: string, durationMs: number, ok: boolean): boolean
  /** The worker is gone. Its task, which is the answer, is next in another's queue; its queue is dealt to others. */
  lost(worker: string): Task | null
  /** Changes nothing. Null: there is no overload. */
  check(): Overload | null
  /** Waiting tasks are dealt anew, running tasks stay with their workers. Null: the pool has this topology already. */
  switchTo(topology: Topology, reason: string): Switch | null
  state(): PoolState
  /** Adds so many workers, or these, and answers their names. When tasks wait in queues, new workers get a share. */
  addWorkers(more: number | readonly string[]): string[]
}

const DEFAULT_QUEUE_LENGTH = 10

export function createWorkPool<Task extends { id: string }>(options: WorkPoolOptions): WorkPool<Task> {
  const { edges = [], stealing = true, maySwitch, now } = options
  const queueLength = options.overload?.queueLength ?? DEFAULT_QUEUE_LENGTH
  const dealing = createDealing<Task>({ topology: options.topology, edges, stealing })
  const measures = createPoolMeasures()
  const namesEver = new Set<string>()
  /** The ids of all tasks that wait or run. */
  const open = new Set<string>()
  const history: Switch[] = []
  const handovers: Handover[] = []
  let lastPlace = 0
  let firstPlace = 0
  employ(options.workers)

  return {
    add: (tasks) => {
      const sinceMs = now()
      const entries: Entry<Task>[] = []
      for (const task of tasks) {
        if (open.has(task.id)) continue
        open.add(task.id)
        entries.push({ task, place: ++lastPlace, sinceMs })
      }
      dealing.deal(entries)
      noteWork(sinceMs)
    },
    next: (name) => {
      const worker = dealing.workers.get(name)
      if (!worker || worker.running) return null
      const taken = dealing.take(worker)
      if (!taken) return null
      const { task, sinceMs } = taken.entry
      const at = now()
      worker.running = { task, waitMs: Math.max(0, at - sinceMs) }
      if (taken.from === null) return { task, handover: null }
      const handover = { task_id: task.id, from: taken.from, to: name, at }
      handovers.push(handover)
      return { task, handover: { ...handover } }
    },
    resume: (name, task) => {
      const worker = dealing.workers.get(name)
      if (!worker || worker.running || open.has(task.id)) return false
      open.add(task.id)
      worker.running = { task, waitMs: 0 }
      noteWork(now())
      return true
    },
    idle: () => {
      const names: string[] = []
      for (const { name, running } of dealing.workers.values()) if (!running) names.push(name)
      return names
    },
    waiting: () => dealing.waiting(),
    done: (name, taskId, durationMs, ok) => {
      const worker = dealing.workers.get(name)
      if (worker?.running?.task.id !== taskId) return false
      if (ok) {
        // A quick failure says nothing about a worker's speed, and would draw all work to where it fails.
        noteDuration(worker, durationMs)
        measures.succeeded(dealing.topology(), worker.running.waitMs, durationMs)
      }
      worker.running = null
      open.delete(taskId)
      noteWork(now())
      return true
    },
    lost: (name) => {
      const worker = dealing.workers.get(name)
      if (!worker) return null
      const task = worker.running?.task ?? null
      dealing.dismiss(worker, task && { task, place: --firstPlace, sinceMs: now() })
      return task
    },
    check: () =>
      findOverload({
        topology: dealing.topology(),
        stealing,
        hasEdges: edges.length > 0,
        queueLength,
        maySwitch,
        ...dealing.load(),
        measured: measures.read(now()),
      }),
    switchTo: (to, reason) => {
      const from = dealing.topology()
      if (to === from) return null
      const at = now()
      const moved = dealing.dealAnew(to)
      noteWork(at)
      const change = { from, to, reason, at, moved, switchMs: now() - at }
      history.push(change)
      return { ...change }
    },
    state: () => ({
      current: dealing.topology(),
      history: history.map((change) => ({ ...change })),
      handovers: handovers.map((handover) => ({ ...handover })),
      byTopology: measures.read(now()),
      workers: [...dealing.workers.values()].map(({ name, queue, running, averageMs }) => {
        return { name, waiting: queue.length, running: running?.task.id ?? null, averageMs }
      }),
      waiting: dealing.waiting(),
      running: open.size - dealing.waiting(),
    }),
    addWorkers: (more) => employ(typeof more === 'number' ? newNames(more) : more),
  }

  function employ(names: readonly string[]): string[] {
    const added = dealing.employ(names)
    for (const name of added) namesEver.add(name)
    return added
  }

  /** Makes names that no worker of this pool ever had, so that a new worker is not taken for one that is gone. */
  function newNames(count: number): string[] {
    const names: string[] = []
    for (let number = namesEver.size + 1; names.length < count; number++) {
      if (!namesEver.has(`w${number}`)) names.push(`w${number}`)
    }
    return names
  }

  function noteWork(atMs: number): void {
    measures.work(open.size > 0 ? dealing.topology() : null, atMs)
  }
}
