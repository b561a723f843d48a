// A pool deals tasks to queues, one for each worker or one hub for all. Its topology decides the queues of a worker:
//   hierarchical  each from its own queue, nothing is handed over
//   mesh          from its own, then from the far end of the longest other
//   star          all from the hub
//   custom        as mesh, along the edges: by [from, to], `to` may take from `from`
// The pool calls nothing and waits for nothing; its owner says when a worker is free or has finished.
import type { Topology } from '../../kernel/flow.ts'
import { createDealing } from './dealing.ts'
import { createPoolMeasures } from './measures.ts'
import { findOverload, type Overload } from './overload.ts'
import { noteDuration, type QueuedTask } from './workers.ts'

export interface WorkPoolOptions {
  workers: readonly string[]
  topology: Topology
  edges?: readonly (readonly [from: string, to: string])[] | undefined
  /** True if an idle worker may take tasks that wait for another, as far as the topology lets it. */
  stealing?: boolean | undefined
  overload?: { queueLength: number } | undefined
  maySwitch: boolean
  /** Milliseconds. */
  now: () => number
}

/** A waiting task that an idle worker took from another's queue. There is no other handover. */
interface Handover {
  from: string
  to: string
}

interface Switch {
  from: Topology
  /** The number of waiting tasks that were dealt anew. */
  moved: number
  switchMs: number
}

export interface WorkPool<Task extends { id: string }> {
  /** A task that waits or runs already is not added again; a task that is done may be, for another attempt. */
  add(tasks: Iterable<Task>): void
  /** The worker's next task; null if the worker is busy or unknown, or there is no task that it may take. */
  next(worker: string): { task: Task; handover: Handover | null } | null
  /** Notes a task from before the pool was made. False: the worker is unknown, or has another task. */
  resume(worker: string, task: Task): boolean
  idle(): string[]
  waiting(): number
  /** Returns false, and does nothing, if the task is not that worker's, or not any more. */
  done(worker: string, taskId: string, durationMs: number, ok: boolean): boolean
  /** Looks for an overload and changes nothing. Null if there is no overload. */
  check(): Overload | null
  /** Waiting tasks are dealt anew, running tasks stay with their workers. Null if nothing changes. */
  switchTo(topology: Topology): Switch | null
}

const DEFAULT_QUEUE_LENGTH = 10

export function createWorkPool<Task extends { id: string }>(options: WorkPoolOptions): WorkPool<Task> {
  const { workers, topology, edges = [], stealing = true, maySwitch, now } = options
  const queueLength = options.overload?.queueLength ?? DEFAULT_QUEUE_LENGTH
  const dealing = createDealing<Task>({ workers, topology, edges, stealing })
  const measures = createPoolMeasures()
  const open = new Set<string>()
  let lastPlace = 0

  return {
    add: (tasks) => {
      const sinceMs = now()
      const entries: QueuedTask<Task>[] = []
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
      worker.running = { task, waitMs: Math.max(0, now() - sinceMs) }
      return { task, handover: taken.from === null ? null : { from: taken.from, to: name } }
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
        // A quick failure says nothing about a worker's speed, and would draw all tasks to the worker that fails.
        noteDuration(worker, durationMs)
        measures.succeeded(dealing.topology(), worker.running.waitMs, durationMs)
      }
      worker.running = null
      open.delete(taskId)
      noteWork(now())
      return true
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
    switchTo: (to) => {
      const from = dealing.topology()
      if (to === from) return null
      const at = now()
      const moved = dealing.dealAnew(to)
      noteWork(at)
      return { from, moved, switchMs: now() - at }
    },
  }

  function noteWork(atMs: number): void {
    measures.work(open.size > 0 ? dealing.topology() : null, atMs)
  }
}
