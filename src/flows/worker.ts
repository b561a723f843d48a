// One process's part in the flows: it claims flow runs, works on them until they end or park, and gives them back when
// it stops. It shares lease and name with the process's worker of runs.
import type { Pool } from '../db/pool.ts'
import { FLOW_CHANNEL } from '../journal/wake.ts'
import type { Log } from '../kernel/log.ts'
import { createClaimLoop } from '../queue/claim-loop.ts'
import { createHealth, UNWELL_AFTER_MS } from '../queue/health.ts'
import { repeat } from '../queue/repeat.ts'
import { createSlots } from '../queue/slots.ts'
import type { RunWorker } from '../runs/worker.ts'
import {
  type ClaimedFlow,
  claimFlows,
  claimSuspectFlow,
  freeOrphanedFlows,
  freeStrayFlows,
  promoteDueFlows,
  releaseSuspectFlow,
  takeOverFlows,
} from './claim-flows.ts'
import { executeFlow } from './execute-flow.ts'
import type { FlowDeps, FlowMessage } from './flow-session.ts'
import { createHandoutWorker } from './handout-worker.ts'
import {
  forgetHandouts,
  freeOrphanedHandouts,
  HANDOUT_NOTICE,
  NO_FLOW_RUN,
  takeOverHandouts,
  WITHDRAWN_NOTICE,
} from './handouts.ts'
import { createLeafSlots } from './leaf-slots.ts'
import { lookAtFlows } from './look-at-flows.ts'
import { createMailbox, type Mailbox } from './mailbox.ts'
import { ownFunctions } from './own-functions.ts'
import { createFlowStarter, type FlowStarter } from './start-together.ts'

export interface FlowWorker extends Pick<FlowStarter, 'start'> {
  /** Flow runs became ready. */
  poke(): void
  active(): number
  /** The flow runs and leaves of dead processes are found, and those that are due wake. */
  isRecovering(): boolean
  /** Takes nothing new; functions under way drain from now on. */
  yield(): void
  /** Functions under way are cut off, and their flow runs handed back. */
  hurry(): void
  stop(): Promise<void>
}

export interface FlowWorkerOptions {
  pool: Pool
  runs: Pick<RunWorker, 'ownerId' | 'hasOthers' | 'join' | 'hearDeleted'>
  deps: Omit<FlowDeps, 'slots' | 'hasOthers' | 'onParked'>
  log: Log
  /** The time that functions under way have to end when the process stops. */
  patienceMs: number
  /** Sweeps that have not succeeded for so long make this process unready. */
  unwellAfterMs?: number
}

const MOST_AT_ONCE = 500
const SWEEP_EVERY_MS = 1_000
/** Sweeps; nobody waits for the handouts of a flow run that is over. */
const FORGET_EVERY = 5
const LONGEST_TIMER_MS = 60_000

export function startFlowWorker({ pool, runs, log, ...options }: FlowWorkerOptions): FlowWorker {
  const { patienceMs } = options
  const { functions, leafLimit } = options.deps
  const slots = createLeafSlots(leafLimit, () => handouts.onRoom())
  const handouts = createHandoutWorker({
    pool,
    ownerId: () => runs.ownerId(),
    functions,
    slots,
    deleted: () => deleted,
    log,
  })
  const deps: FlowDeps = { ...options.deps, slots, hasOthers: () => runs.hasOthers(), onParked: wakeLater }
  const mailboxes = new Map<string, Mailbox<FlowMessage>>()
  const projectOf = new Map<string, string>()
  let deleted: ReadonlySet<string> = new Set()
  const known = (): string[] => [...functions.keys()]
  let isStopped = false
  let stopping: Promise<void> | null = null
  let publishedAs: string | null = null
  let forgottenUpTo = NO_FLOW_RUN
  let sweeps = 0
  const loop = createClaimLoop<ClaimedFlow>({
    name: 'flow runs',
    slots: createSlots(MOST_AT_ONCE),
    ownerId: () => runs.ownerId(),
    claim: (ask) => claimFlows(pool, { ...ask, leftOut: [...deleted] }, known()),
    claimSuspect: (owner, lastProjectId) => claimSuspectFlow(pool, owner, lastProjectId, known()),
    releaseSuspect: (owner) => releaseSuspectFlow(pool, owner),
    work,
    freeStrays: (owner, inHand) =>
      freeStrayFlows(
        pool,
        owner,
        inHand.map((flow) => flow.id),
      ),
    makesReady: () => false,
    isAdopting: () => starter.isInserting(),
    log,
  })
  const poke = loop.poke

  runs.join({
    onNotification: (channel, payload) => {
      if (channel !== FLOW_CHANNEL) return
      if (payload === HANDOUT_NOTICE) return handouts.poke()
      if (payload === WITHDRAWN_NOTICE) return withdraw()
      const mailbox = mailboxes.get(payload)
      if (mailbox) mailbox.put({ type: 'news' })
      else poke()
    },
    onLapse: () => {
      for (const mailbox of mailboxes.values()) mailbox.put({ type: 'lapse' })
      handouts.lapse()
    },
    onDeath: async (tx, workerId, charge) => {
      await takeOverFlows(tx, workerId, charge)
      await takeOverHandouts(tx, workerId, charge)
    },
  })
  runs.hearDeleted((projectIds) => {
    deleted = projectIds
    for (const [flowId, projectId] of projectOf) {
      if (deleted.has(projectId)) mailboxes.get(flowId)?.put({ type: 'lapse' })
    }
    handouts.leaveDeleted()
  })
  const ifItFails = 'flow runs cannot be recovered'
  const health = createHealth({ log, ifItFails, unwellAfterMs: options.unwellAfterMs ?? UNWELL_AFTER_MS })
  const stopSweeping = repeat({ work: sweep, everyMs: SWEEP_EVERY_MS, ifItFails, health, log })

  const starter = createFlowStarter({
    pool,
    ownerFor: ({ root, projectId }) =>
      ownFunctions(root).every((name) => functions.has(name)) && loop.reserve(projectId) ? runs.ownerId() : null,
    onOwned: loop.adopt,
    onNotOwned: ({ projectId }) => loop.unreserve(projectId),
    onReady: poke,
  })

  return {
    start: starter.start,
    poke,
    active: () => loop.active(),
    isRecovering: health.isWell,
    yield: () => void stop().catch(() => {}),
    hurry: () => {
      void stop().catch(() => {})
      handBackAll(true)
      handouts.lapse()
    },
    stop,
  }

  /** A second caller waits for the same end. */
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
    // Flow runs that are claimed meanwhile hand themselves back.
    await loop.stop()
    await handoutsDone
    clearTimeout(hurry)
  }

  function handBackAll(isUrgent: boolean): void {
    for (const mailbox of mailboxes.values()) mailbox.put({ type: 'hand_back', isUrgent })
  }

  function withdraw(): void {
    handouts.withdraw().catch((error: unknown) => log.debug({ err: error }, 'withdrawn leaves go on to their end'))
  }

  /** Without this timer a sweep would wake the flow run, up to a second late. */
  function wakeLater(forMs: number): void {
    if (forMs < LONGEST_TIMER_MS) setTimeout(wakeDue, forMs + 1).unref()
  }

  function wakeDue(): void {
    if (isStopped) return
    promoteDueFlows(pool).then(poke, (error: unknown) =>
      log.debug({ err: error }, 'flow runs that are due will be woken by the next sweep'),
    )
  }

  async function work(flow: ClaimedFlow): Promise<boolean> {
    const mailbox = createMailbox<FlowMessage>()
    // An earlier session of this process has lost the flow run, and may not know yet.
    mailboxes.get(flow.id)?.put({ type: 'lapse' })
    mailboxes.set(flow.id, mailbox)
    projectOf.set(flow.id, flow.project_id)
    if (isStopped) mailbox.put({ type: 'hand_back', isUrgent: true })
    try {
      return await executeFlow(deps, flow, mailbox)
    } finally {
      if (mailboxes.get(flow.id) === mailbox) {
        mailboxes.delete(flow.id)
        projectOf.delete(flow.id)
      }
    }
  }

  /** The functions are published under each name that this process has had. */
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
    const { flows, leaves } = await lookAtFlows(pool)
    if (flows.has_due) await promoteDueFlows(pool)
    if (flows.has_orphans) await freeOrphanedFlows(pool)
    if (leaves.has_orphans) await freeOrphanedHandouts(pool)
    if (sweeps++ % FORGET_EVERY === 0) forgottenUpTo = await forgetHandouts(pool, forgottenUpTo)
    await handouts.sweep({ ...leaves, has_ready: leaves.has_ready || leaves.has_orphans })
    await loop.sweep({ ...flows, has_ready: flows.has_ready || flows.has_due || flows.has_orphans })
  }
}
