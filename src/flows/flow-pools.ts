// Parts of a flow that have workers of their own: their leaves are dealt to these workers, and taken by them as the
// topology says.
import type { Adaptive, ForkJoin, MapReduce, Topology } from '../kernel/flow.ts'
import type { LeafTask } from './machine.ts'
import { workerNames } from './validate.ts'
import { createWorkPool, type WorkPool } from './work-pool.ts'

export type PoolNode = Adaptive | ForkJoin | MapReduce

export interface PoolOf {
  id: string
  node: PoolNode
}

export interface Taken {
  task: LeafTask
  worker: string
  handover: { from: string; to: string } | null
}

export interface SwitchedTopology {
  pool: string
  from: Topology
  to: Topology
  reason: string
  moved: number
  switch_ms: number
}

export interface FlowPools {
  /** It may start as soon as a worker takes it. */
  add(pool: PoolOf, task: LeafTask): void
  /** At most so many that are to be started now. */
  take(room: number): Taken[]
  done(task: LeafTask, durationMs: number, ok: boolean): void
  /** Those that wait and were dropped. */
  remove(ids: ReadonlySet<string>): void
  /** Those that wait for a worker. */
  waiting(): LeafTask[]
  waitingCount(): number
  /** Pools that are overloaded and have switched because of it. */
  rebalance(): SwitchedTopology[]
  /** As it was when the flow was taken over. */
  restore(pool: string, topology: Topology): void
}

const now = (): number => performance.timeOrigin + performance.now()

export function createFlowPools(): FlowPools {
  const pools = new Map<string, WorkPool<LeafTask>>()
  const restored = new Map<string, Topology>()
  const workerOf = new Map<string, { pool: WorkPool<LeafTask>; worker: string }>()
  const waiting = new Map<string, LeafTask>()
  const poolOf = ({ id, node }: PoolOf): WorkPool<LeafTask> => {
    const known = pools.get(id)
    if (known) return known
    const made = createWorkPool<LeafTask>({ ...settingsOf(node, restored.get(id)), now })
    pools.set(id, made)
    return made
  }

  return {
    add: (pool, task) => {
      waiting.set(task.id, task)
      poolOf(pool).add([task])
    },
    take: (room) => {
      const taken: Taken[] = []
      if (waiting.size === 0) return taken
      for (const pool of pools.values()) {
        for (const { name, running } of pool.state().workers) {
          if (taken.length >= room) return taken
          if (running) continue
          for (let next = pool.next(name); next; next = pool.next(name)) {
            const { task, handover } = next
            if (!waiting.delete(task.id)) {
              // Nobody waits for it any more.
              pool.done(name, task.id, 0, false)
              continue
            }
            workerOf.set(task.id, { pool, worker: name })
            taken.push({ task, worker: name, handover })
            break
          }
        }
      }
      return taken
    },
    done: (task, durationMs, ok) => {
      const at = workerOf.get(task.id)
      workerOf.delete(task.id)
      at?.pool.done(at.worker, task.id, durationMs, ok)
    },
    remove: (ids) => {
      for (const id of ids) waiting.delete(id)
    },
    waiting: () => [...waiting.values()],
    waitingCount: () => waiting.size,
    rebalance: () =>
      [...pools].flatMap(([id, pool]) => {
        const overload = pool.check()
        return overload?.to ? switched(id, pool, overload.to, overload.reason) : []
      }),
    restore: (pool, topology) => void restored.set(pool, topology),
  }
}

function switched(id: string, pool: WorkPool<LeafTask>, to: Topology, reason: string): SwitchedTopology[] {
  const result = pool.switchTo(to, reason)
  if (!result) return []
  return [{ pool: id, from: result.from, to: result.to, reason, moved: result.moved, switch_ms: result.switchMs }]
}

function settingsOf(node: PoolNode, topology: Topology | undefined) {
  switch (node.type) {
    case 'adaptive':
      return {
        workers: workerNames(node.workers),
        topology: topology ?? node.topology ?? 'hierarchical',
        ...(node.edges ? { edges: node.edges } : {}),
        ...(node.overload ? { overload: { queueLength: node.overload.queue_length } } : {}),
        maySwitch: node.switch,
      }
    case 'fork_join':
      return {
        workers: workerNames(node.workers),
        topology: 'mesh' as const,
        stealing: node.stealing,
        maySwitch: false,
      }
    case 'map_reduce':
      return { workers: workerNames(node.workers), topology: 'star' as const, maySwitch: false }
  }
}
