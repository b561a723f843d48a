// Deals the waiting tasks of a pool to its workers. Each task waits in one queue: that of a worker, or the hub.
import type { Topology } from '../../kernel/flow.ts'
import type { PoolLoad } from './overload.ts'
import { createPoolQueue } from './queue.ts'
import { createPoolWorker, handsOf, longest, type PoolWorker, type QueuedTask, takeTurns } from './workers.ts'

export interface Dealing<Task> {
  topology(): Topology
  waiting(): number
  workers: ReadonlyMap<string, PoolWorker<Task>>
  /** Deals each entry to the worker that is expected to finish it first. */
  deal(entries: readonly QueuedTask<Task>[]): void
  /** The next entry of an idle worker; `from` is the other worker from whose queue the entry was taken. */
  take(worker: PoolWorker<Task>): { entry: QueuedTask<Task>; from: string | null } | null
  /** Switches the topology and deals all waiting entries anew. Returns the number of these entries. */
  dealAnew(topology: Topology): number
  load(): Pick<PoolLoad, 'hub' | 'workers'>
}

export function createDealing<Task>(options: {
  workers: readonly string[]
  topology: Topology
  edges: readonly (readonly [from: string, to: string])[]
  stealing: boolean
}): Dealing<Task> {
  const { edges, stealing } = options
  const workers = new Map(options.workers.map((name) => [name, createPoolWorker<Task>(name)]))
  /** The queue of a star, and of a pool without workers. */
  const hub = createPoolQueue<QueuedTask<Task>>()
  const givers = Map.groupBy(edges, ([, to]) => to)
  let topology = options.topology
  let waiting = 0

  return {
    topology: () => topology,
    waiting: () => waiting,
    workers,
    deal,
    take: (worker) => {
      const own = topology === 'star' ? hub.shift() : worker.queue.shift()
      const giver = own ? null : giverTo(worker)
      const entry = own ?? giver?.queue.pop()
      if (!entry) return null
      waiting--
      return { entry, from: giver?.name ?? null }
    },
    dealAnew: (next) => {
      topology = next
      const queues = [hub, ...Array.from(workers.values(), ({ queue }) => queue)]
      const entries = queues.flatMap((queue) => queue.drain())
      waiting -= entries.length
      deal(entries.sort((one, other) => one.place - other.place))
      return entries.length
    },
    load: () => ({
      hub: hub.length,
      workers: handsOf(workers.values()).map(({ worker, paceMs }) => ({
        waiting: worker.queue.length,
        perSecond: 1_000 / paceMs,
        isIdle: !worker.running && !mayTake(worker),
      })),
    }),
  }

  function deal(entries: readonly QueuedTask<Task>[]): void {
    const nextHand = takeTurns(topology === 'star' ? [] : handsOf(workers.values()))
    for (const entry of entries) (nextHand()?.worker.queue ?? hub).push(entry)
    waiting += entries.length
  }

  /** The worker whose queue this idle worker may take from: the one with the longest queue. */
  function giverTo(worker: PoolWorker<Task>): PoolWorker<Task> | null {
    if (!stealing || waiting === 0) return null
    if (topology === 'mesh') return longest(workers.values())
    if (topology !== 'custom') return null
    return longest((givers.get(worker.name) ?? []).flatMap(([from]) => workers.get(from) ?? []))
  }

  function mayTake(worker: PoolWorker<Task>): boolean {
    if (topology === 'star' || (topology === 'mesh' && stealing)) return waiting > 0
    return worker.queue.length > 0 || giverTo(worker) !== null
  }
}
