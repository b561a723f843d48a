// Deals the waiting tasks of a pool to its workers. Each task waits in one queue: that of a worker, or the hub.
import type { Topology } from '../kernel/flow.ts'
import type { PoolLoad } from './pool-overload.ts'
import { createPoolQueue, type PoolQueue } from './pool-queue.ts'
import { createWorker, type Entry, type Hand, handsOf, longest, takeTurns, type Worker } from './pool-workers.ts'

export interface Dealing<Task> {
  topology(): Topology
  waiting(): number
  workers: ReadonlyMap<string, Worker<Task>>
  /** Deals each entry to the worker that is expected to be through with it first. */
  deal(entries: readonly Entry<Task>[]): void
  /** The next entry of an idle worker; `from`: the worker whose queue it was taken from, where that is another's. */
  take(worker: Worker<Task>): { entry: Entry<Task>; from: string | null } | null
  /** Switches the topology and deals all waiting entries anew. Answers their number. */
  dealAnew(topology: Topology): number
  /** Adds workers, and answers the names that are new. */
  employ(names: readonly string[]): string[]
  /** Deals the worker's queue to others; its undone entry goes to the head of another's queue. */
  dismiss(worker: Worker<Task>, undone: Entry<Task> | null): void
  load(): Pick<PoolLoad, 'hub' | 'workers'>
}

export function createDealing<Task>(options: {
  topology: Topology
  edges: readonly (readonly [from: string, to: string])[]
  stealing: boolean
}): Dealing<Task> {
  const { edges, stealing } = options
  const workers = new Map<string, Worker<Task>>()
  /** The queue of a star, and of any pool while it has no workers. */
  const hub = createPoolQueue<Entry<Task>>()
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
      return dealAnew()
    },
    employ: (names) => {
      const added = names.filter((name) => !workers.has(name))
      for (const name of added) workers.set(name, createWorker(name))
      // When nothing may leave its queue, new workers wait for new tasks; tasks that had no worker are dealt to them.
      if (added.length > 0 && (stealing || hub.length > 0)) dealAnew()
      return added
    },
    dismiss: (worker, undone) => {
      workers.delete(worker.name)
      const entries = worker.queue.drain()
      waiting -= entries.length
      if (undone) {
        queueOf(takeTurns(hands())()).unshift(undone)
        waiting++
      }
      deal(entries)
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

  function deal(entries: readonly Entry<Task>[]): void {
    const nextHand = takeTurns(hands())
    for (const entry of entries) queueOf(nextHand()).push(entry)
    waiting += entries.length
  }

  function dealAnew(): number {
    const queues = [hub, ...Array.from(workers.values(), ({ queue }) => queue)]
    const entries = queues.flatMap((queue) => queue.drain())
    waiting -= entries.length
    deal(entries.sort((one, other) => one.place - other.place))
    return entries.length
  }

  /** Empty where all workers take from the hub. */
  function hands(): Hand<Task>[] {
    return topology === 'star' ? [] : handsOf(workers.values())
  }

  function queueOf(hand: Hand<Task> | null): PoolQueue<Entry<Task>> {
    return hand?.worker.queue ?? hub
  }

  /** The worker that this idle worker may take from: the one with the longest queue. */
  function giverTo(worker: Worker<Task>): Worker<Task> | null {
    if (!stealing || waiting === 0) return null
    if (topology === 'mesh') return longest(workers.values())
    if (topology !== 'custom') return null
    return longest((givers.get(worker.name) ?? []).flatMap(([from]) => workers.get(from) ?? []))
  }

  function mayTake(worker: Worker<Task>): boolean {
    if (topology === 'star' || (topology === 'mesh' && stealing)) return waiting > 0
    return worker.queue.length > 0 || giverTo(worker) !== null
  }
}
