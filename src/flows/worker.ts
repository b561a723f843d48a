// One process's part in the flows: it claims flow runs, works on them until they end or park, and gives back what it holds
// when it stops. Lease and name are those of the process's worker of runs.
import type { Pool } from '../db/pool.ts'
import { FLOW_CHANNEL } from '../journal/wake.ts'
import type { Log } from '../kernel/log.ts'
import { repeat } from '../queue/repeat.ts'
import type { RunWorker } from '../runs/worker.ts'
import { type ClaimedFlow, claimFlows, freeOrphanedFlows, freeStrayFlows } from './claim-flows.ts'
import { executeFlow } from './execute-flow.ts'
import type { FlowDeps, FlowMessage } from './flow-session.ts'
import { createHandoutWorker } from './handout-worker.ts'
import { forgetHandouts, freeOrphanedHandouts, HANDOUT_NOTICE, WITHDRAWN_NOTICE } from './handouts.ts'
import { createLeafSlots } from './leaf-slots.ts'
import { createMailbox, type Mailbox } from './mailbox.ts'
import { ownFunctions } from './own-functions.ts'
import { createFlowStarter, type FlowStarter } from './start-together.ts'

export interface FlowWorker extends Pick<FlowStarter, 'start'> {
  /** Flow runs became ready. */
  poke(): void
  active(): number
  /** Takes nothing new; functions under way drain from now on. */
  yield(): void
  /** Functions under way are cut off, and their flow runs handed back. */
  hurry(): void
  stop(): Promise<void>
}

export interface FlowWorkerOptions {
  pool: Pool
  runs: Pick<RunWorker, 'ownerId' | 'hasOthers' | 'join'>
  deps: Omit<FlowDeps, 'slots' | 'hasOthers' | 'onParked'>
  log: Log
  /** How long functions under way may take to end when the process stops. */
  patienceMs: number
}

const MOST_AT_ONCE = 500
const SWEEP_EVERY_MS = 1_000
const LONGEST_TIMER_MS = 60_000

export function startFlowWorker({ pool, runs, log, ...options }: FlowWorkerOptions): FlowWorker {
  const { patienceMs } = options
  const { functions, leafLimit } = options.deps
  const slots = createLeafSlots(leafLimit, () => handouts.onRoom())
  const handouts = createHandoutWorker({ pool, ownerId: () => runs.ownerId(), functions, slots, log })
  const deps: FlowDeps = { ...options.deps, slots, hasOthers: () => runs.hasOthers(), onParked: wakeLater }
  const active = new Map<string, { mailbox: Mailbox<FlowMessage>; done: Promise<void> }>()
  let isStopped = false
  let stopping: Promise<void> | null = null
  let claiming: Promise<void> | null = null
  let isPokedAgain = false
  let mayHaveStrays = false
  let publishedAs: string | null = null
  /** There may be more than this process had room for. */
  let isFull = false
  let isFreeing = false

  runs.join({
    onNotification: (channel, payload) => {
      if (channel !== FLOW_CHANNEL) return
      if (payload === HANDOUT_NOTICE) return handouts.poke()
      if (payload === WITHDRAWN_NOTICE) return withdraw()
      const known = active.get(payload)
      if (known) known.mailbox.put({ type: 'news' })
      else poke()
    },
    onLapse: () => {
      for (const { mailbox } of active.values()) mailbox.put({ type: 'lapse' })
      handouts.lapse()
    },
  })
  const stopSweeping = repeat({
    work: sweep,
    everyMs: SWEEP_EVERY_MS,
    ifItFails: 'flows will be looked for later',
    log,
  })

  const starter = createFlowStarter({
    pool,
    ownerFor: ({ root }) => {
      const isOurs =
        !isStopped &&
        !isFreeing &&
        active.size < MOST_AT_ONCE &&
        ownFunctions(root).every((name) => functions.has(name))
      return isOurs ? runs.ownerId() : null
    },
    onOwned: work,
    onReady: poke,
  })

  return {
    start: starter.start,
    poke,
    active: () => active.size,
    yield: () => void stop().catch(() => {}),
    hurry: () => {
      void stop().catch(() => {})
      handBackAll(true)
      handouts.lapse()
    },
    stop,
  }

  /** Whoever comes second waits for the same end. */
  function stop(): Promise<void> {
    stopping ??= stopAll()
    return stopping
  }

  async function stopAll(): Promise<void> {
    isStopped = true
    const hurry = setTimeout(handBackAll, patienceMs, true)
    handBackAll(false)
    const handoutsDone = handouts.stop(patienceMs)
    await stopSweeping()
    await claiming
    // Those that were claimed meanwhile, too.
    handBackAll(false)
    await Promise.all([...active.values()].map(({ done }) => done))
    await handoutsDone
    clearTimeout(hurry)
  }

  function handBackAll(isUrgent: boolean): void {
    for (const { mailbox } of active.values()) mailbox.put({ type: 'hand_back', isUrgent })
  }

  function withdraw(): void {
    handouts.withdraw().catch((error: unknown) => log.debug({ err: error }, 'withdrawn leaves go on to their end'))
  }

  function poke(): void {
    isPokedAgain = true
    if (isStopped || claiming || isFreeing) return
    claiming = claimWhilePoked()
      .catch((error: unknown) => {
        mayHaveStrays = true
        log.debug({ err: error }, 'flows could not be claimed; the next sweep tries again')
      })
      .finally(() => {
        claiming = null
      })
  }

  async function claimWhilePoked(): Promise<void> {
    while (isPokedAgain && !isStopped) {
      isPokedAgain = false
      const room = MOST_AT_ONCE - active.size
      isFull = room <= 0
      if (isFull) return
      const claimed = await claimFlows(pool, { owner: runs.ownerId(), limit: room, functions: [...functions.keys()] })
      isFull = claimed.length === room
      claimed.forEach(work)
    }
  }

  /** Without a timer here it would be seen by a sweep, up to a second late. */
  function wakeLater(forMs: number): void {
    if (forMs < LONGEST_TIMER_MS) setTimeout(poke, forMs + 1).unref()
  }

  function work(flow: ClaimedFlow): void {
    const mailbox = createMailbox<FlowMessage>()
    // Whoever had it here before has lost it, and may not know yet.
    active.get(flow.id)?.mailbox.put({ type: 'lapse' })
    const done = executeFlow(deps, flow, mailbox).then((isSettled) => {
      if (active.get(flow.id)?.mailbox === mailbox) active.delete(flow.id)
      if (!isSettled) mayHaveStrays = true
      if (isFull) poke()
    })
    active.set(flow.id, { mailbox, done })
    if (isStopped) mailbox.put({ type: 'hand_back', isUrgent: true })
  }

  /** Under each name that this process has had. */
  async function publishFunctions(): Promise<void> {
    const ownerId = runs.ownerId()
    if (ownerId === publishedAs) return
    await pool.query(
      `insert into process_functions (worker_id, names) select id, $2 from workers where id = $1
       on conflict (worker_id) do update set names = excluded.names`,
      [ownerId, [...functions.keys()]],
    )
    publishedAs = ownerId
  }

  async function sweep(): Promise<void> {
    await publishFunctions()
    await freeOrphanedFlows(pool)
    await freeOrphanedHandouts(pool)
    await forgetHandouts(pool)
    await handouts.sweep()
    // What is claimed or started meanwhile would be taken for one.
    if (mayHaveStrays && !claiming && !starter.isInserting()) {
      mayHaveStrays = false
      isFreeing = true
      await freeStrayFlows(pool, runs.ownerId(), [...active.keys()]).finally(() => {
        isFreeing = false
      })
    }
    poke()
  }
}
