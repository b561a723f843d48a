// One process's part in the flows: it claims flow runs, works on them until they end or park, and gives them back when
// it stops. It shares lease and name with the process's worker of runs.
import type { Pool } from '../../db/pool.ts'
import { FLOW_CHANNEL } from '../../journal/wake.ts'
import type { Log } from '../../kernel/log.ts'
import { repeat } from '../../kernel/repeat.ts'
import { type ClaimLoop, createClaimLoop } from '../../queue/claim-loop.ts'
import { createDueTimer } from '../../queue/due-timer.ts'
import { createHealth, UNWELL_AFTER_MS } from '../../queue/health.ts'
import { createSlots } from '../../queue/slots.ts'
import type { Companion } from '../../runs/companions.ts'
import type { RunWorker } from '../../runs/worker.ts'
import { ownFunctions } from '../definition/own-functions.ts'
import {
  type ClaimedFlow,
  claimFlows,
  claimSuspectFlow,
  freeOrphanedFlows,
  freeStrayFlows,
  promoteDueFlows,
  releaseSuspectFlow,
  takeOverFlows,
} from './claim.ts'
import { executeFlow } from './execute.ts'
import { createFlowStarter, type FlowStarter } from './flow-starter.ts'
import { createFlowsInHand, type FlowsInHand } from './flows-in-hand.ts'
import { createFunctionList } from './function-list.ts'
import { createHandoutWorker, type HandoutWorker } from './handout-worker.ts'
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
import type { FlowDeps } from './owned-flow.ts'

export interface FlowWorker extends Pick<FlowStarter, 'start'> {
  poke(): void
  active(): number
  /** True if sweeps succeed: flow runs and leaves of dead processes are found, and due flow runs are woken. */
  isRecovering(): boolean
  /** Stops taking flow runs; functions under way drain from now on. */
  yield(): void
  /** Cuts off functions under way, and hands back their flow runs. */
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
  /** Sweeps that have not succeeded for this long make the process unready. */
  unwellAfterMs?: number
}

const MOST_AT_ONCE = 500
const SWEEP_EVERY_MS = 1_000
/** Sweeps between two removals of handouts whose flow run is over. */
const FORGET_EVERY = 5

export function startFlowWorker({ pool, runs, log, ...options }: FlowWorkerOptions): FlowWorker {
  const { patienceMs } = options
  const { functions, leafLimit, patterns } = options.deps
  const slots = createLeafSlots(leafLimit, () => handouts.onRoom())
  const ownerId = (): string => runs.ownerId()
  const handouts = createHandoutWorker({ pool, ownerId, functions, slots, deleted: () => deleted, log })
  const promote = (): Promise<unknown> => promoteDueFlows(pool)
  const onParked = createDueTimer({ name: 'flow runs', promote, onPromoted: () => poke(), log })
  const deps: FlowDeps = { ...options.deps, slots, hasOthers: () => runs.hasOthers(), onParked }
  const inHand = createFlowsInHand()
  let deleted: ReadonlySet<string> = new Set()
  const known = (): string[] => [...functions.keys()]
  let stopping: Promise<void> | null = null
  const loop = createClaimLoop<ClaimedFlow>({
    name: 'flow runs',
    slots: createSlots(MOST_AT_ONCE),
    ownerId,
    claim: (ask) => claimFlows(pool, { ...ask, leftOut: [...deleted] }, known()),
    claimSuspect: (owner, lastProjectId) => claimSuspectFlow(pool, owner, lastProjectId, known()),
    releaseSuspect: (owner) => releaseSuspectFlow(pool, owner),
    work: (flow) => inHand.hold(flow, (mailbox) => executeFlow(deps, flow, mailbox)),
    freeStrays: (owner, flows) => freeStrayFlows(pool, owner, flows),
    makesReady: () => false,
    isAdopting: () => starter.isInserting(),
    log,
  })
  const poke = loop.poke

  runs.join(companionFor({ inHand, handouts, poke, log }))
  runs.hearDeleted((projectIds) => {
    deleted = projectIds
    inHand.leaveDeleted(deleted)
    handouts.leaveDeleted()
  })
  const ifItFails = 'flow runs cannot be recovered'
  const health = createHealth({ log, ifItFails, unwellAfterMs: options.unwellAfterMs ?? UNWELL_AFTER_MS })
  const stopSweeping = repeat({
    work: sweeping({ pool, runs, functions, handouts, loop }),
    everyMs: SWEEP_EVERY_MS,
    ifItFails,
    health,
    log,
  })

  const starter = createFlowStarter({
    pool,
    patterns,
    own: {
      ownerId,
      reserve: ({ root, projectId }) =>
        ownFunctions(root, patterns).every((name) => functions.has(name)) && loop.reserve(projectId),
      adopt: loop.adopt,
      unreserve: ({ projectId }) => loop.unreserve(projectId),
    },
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
      inHand.handBack(true)
      handouts.lapse()
    },
    stop,
  }

  /** A second caller waits for the same stop. */
  function stop(): Promise<void> {
    stopping ??= stopAll()
    return stopping
  }

  async function stopAll(): Promise<void> {
    const hurry = setTimeout(inHand.handBack, patienceMs, true)
    inHand.handBack(false)
    const handoutsDone = handouts.stop(patienceMs)
    await stopSweeping()
    // Flow runs that are claimed meanwhile are handed back one by one.
    await loop.stop()
    await handoutsDone
    clearTimeout(hurry)
  }
}

/** Flow runs hear of news, and of dead processes, through the process's worker of runs. */
function companionFor({
  inHand,
  handouts,
  poke,
  log,
}: {
  inHand: FlowsInHand
  handouts: HandoutWorker
  poke: () => void
  log: Log
}): Companion {
  const withdraw = (): void => {
    handouts.withdraw().catch((error: unknown) => log.debug({ err: error }, 'withdrawn leaves go on to their end'))
  }
  return {
    onNotification: (channel, payload) => {
      if (channel !== FLOW_CHANNEL) return
      if (payload === HANDOUT_NOTICE) return handouts.poke()
      if (payload === WITHDRAWN_NOTICE) return withdraw()
      if (!inHand.put(payload, { type: 'news' })) poke()
    },
    onListening: () => {
      // Notices that were sent while nobody listened are lost.
      inHand.putAll({ type: 'news' })
      poke()
    },
    onLapse: () => {
      inHand.putAll({ type: 'lapse' })
      handouts.lapse()
    },
    onDeath: async (tx, workerId, charge) => {
      await takeOverFlows(tx, workerId, charge)
      await takeOverHandouts(tx, workerId, charge)
    },
  }
}

/** The work that a process does every second for all flow runs and leaves, whichever process owns them. */
function sweeping({
  pool,
  runs,
  functions,
  handouts,
  loop,
}: {
  pool: Pool
  runs: Pick<RunWorker, 'ownerId'>
  functions: FlowDeps['functions']
  handouts: HandoutWorker
  loop: ClaimLoop<ClaimedFlow>
}): () => Promise<void> {
  const publishFunctions = createFunctionList(pool, functions)
  let forgottenUpTo = NO_FLOW_RUN
  let sweeps = 0
  return async () => {
    await publishFunctions(runs.ownerId())
    const { flows, leaves } = await lookAtFlows(pool)
    if (flows.has_due) await promoteDueFlows(pool)
    if (flows.has_orphans) await freeOrphanedFlows(pool)
    if (leaves.has_orphans) await freeOrphanedHandouts(pool)
    if (sweeps++ % FORGET_EVERY === 0) forgottenUpTo = await forgetHandouts(pool, forgottenUpTo)
    await handouts.sweep({ ...leaves, has_ready: leaves.has_ready || leaves.has_orphans })
    await loop.sweep({ ...flows, has_ready: flows.has_ready || flows.has_due || flows.has_orphans })
  }
}
