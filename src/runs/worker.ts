// One process's part in the work: it claims runs into its slots, keeps its lease, hears of cancels and halts, takes
// over the runs of dead processes, and gives its own back when it stops.

import { START_PATIENCE_MS, whileUnavailable } from '../db/patience.ts'
import type { Db, Pool } from '../db/pool.ts'
import type { Hub } from '../journal/hub.ts'
import type { Journal } from '../journal/journal.ts'
import { createLiveTexts, type LiveTexts } from '../journal/live-text.ts'
import { createOutageWatch, type OutageWatch } from '../journal/outage-watch.ts'
import { createProjectCalls, type ProjectCalls } from '../journal/project-calls.ts'
import { takeOver } from '../journal/take-over.ts'
import { waitForTools } from '../journal/tool-waits.ts'
import {
  CANCEL_CHANNEL,
  EVAL_CHANNEL,
  FLOW_CHANNEL,
  HALT_CHANNEL,
  READY_CHANNEL,
  STOP_CHANNEL,
  tellProcesses,
} from '../journal/wake.ts'
import type { Log } from '../kernel/log.ts'
import { repeat } from '../kernel/repeat.ts'
import { PROMPT_CHANNEL } from '../prompts/write-prompt.ts'
import { createClaimLoop } from '../queue/claim-loop.ts'
import { UNWELL_AFTER_MS } from '../queue/health.ts'
import { type Presence, type PresenceOptions, startPresence } from '../queue/presence.ts'
import type { Charge } from '../queue/queue-table.ts'
import { createSlots } from '../queue/slots.ts'
import { closeCalls } from '../tasks/close-questions.ts'
import { TASK_CHANNEL } from '../tasks/task-queue.ts'
import { type Companion, type Companions, createCompanions } from './companions.ts'
import { executeRun } from './execute-run.ts'
import type { RunsSeen } from './look-at-runs.ts'
import type { RunDeps } from './owned-run.ts'
import { type FollowedSwitches, followSwitches } from './project-switches.ts'
import { createRecovery } from './recover-runs.ts'
import { createRunClaims, type DefinedRun, type RunClaims } from './run-claims.ts'
import { createRunOffers } from './run-offers.ts'
import { createRunsInHand, type RunsInHand } from './runs-in-hand.ts'

export interface WorkerOptions {
  url: string
  pool: Pool
  hub: Hub
  log: Log
  /** With 0 slots this process starts runs and shows them, and works on none. */
  slots: number
  /** The tools that this process has, by name: it takes no run that needs another. Without a list it takes any run. */
  tools?: readonly string[]
  leaseMs: number
  /** The time for which calls under way may go on by themselves when this process stops. */
  drainMs: number
  isAlone: boolean
  /** The time without a success of recovery after which this process is not ready. */
  unwellAfterMs?: number
  deps: Omit<
    RunDeps,
    | 'isHalted'
    | 'isMonthLimited'
    | 'refreshHalted'
    | 'onText'
    | 'onReady'
    | 'calls'
    | 'outages'
    | 'runFlow'
    | 'isRouted'
  >
}

export interface RunWorker {
  /** Runs became ready: they are taken here if a slot is free, and offered to other processes if none is. */
  onReady(inMs?: number): void
  texts: LiveTexts
  /** True if the project's off switch is on, as far as this process has heard. */
  isHalted(projectId: string): boolean
  /** The name under which this process owns its runs. */
  ownerId(): string
  /** Model calls that no agent makes; the process has one such account. */
  calls: ProjectCalls
  outages: OutageWatch
  /** True if other processes use the same database, as far as this process has seen. */
  hasOthers(): boolean
  /** Adds a worker of this process that shares its name: it is told of notifications, of a lapse, and of deaths. */
  join(companion: Companion): void
  /** Called with the deleted projects that still have rows, once a second, and once more when there are none. */
  hearDeleted(listener: (projectIds: ReadonlySet<string>) => void): void
  /** Says how runs of agents that are flows are executed. Until then they wait, each in its slot. */
  serveFlows(runFlow: NonNullable<RunDeps['runFlow']>): void
  active(): number
  /** True if the runs of dead processes are found, and due runs are woken. */
  isRecovering(): boolean
  /** Takes no new run, and asks the runs to give their slots back. The time for their calls begins now. */
  yield(): void
  /** Cuts off the calls under way, and hands their runs back. */
  hurry(): void
  stop(): Promise<void>
}

const SWEEP_EVERY_MS = 1_000
const CHANNELS = [
  ...[READY_CHANNEL, CANCEL_CHANNEL, STOP_CHANNEL, HALT_CHANNEL],
  ...[FLOW_CHANNEL, TASK_CHANNEL, PROMPT_CHANNEL, EVAL_CHANNEL],
]

export async function startRunWorker(options: WorkerOptions): Promise<RunWorker> {
  const { pool, hub, log, unwellAfterMs = UNWELL_AFTER_MS } = options
  const { journal } = options.deps
  const recovery = createRecovery({ pool, journal, log }, unwellAfterMs)
  const slots = createSlots(options.slots)
  const switches = await whileUnavailable(START_PATIENCE_MS, () => followSwitches(pool))
  const companions = createCompanions()
  const inHand = createRunsInHand({ hub, texts: () => texts })
  const claims = createRunClaims({ pool, journal, slots, switches: switches.now, tools: options.tools ?? null, log })
  let isStarted = false
  let draining: NodeJS.Timeout | undefined
  /** Notices that come before this process is set up are covered by its first look for runs. */
  const poke = (): void => {
    if (isStarted) loop.poke()
  }
  const isWorker = options.slots > 0
  const ownerId = (): string => presence.ownerId()
  const hasOthers = (): boolean => presence.hasOthers()
  const offers = createRunOffers({ pool, slots, isWorker, hasOthers, poke, log })
  const forCalls = createForCalls({ pool, ownerId, onReady: () => offers.onReady(), log })
  const ofSwitches = depsOf(switches)
  const flows = Promise.withResolvers<NonNullable<RunDeps['runFlow']>>()
  const deps: RunDeps = {
    ...options.deps,
    isRouted: options.tools !== undefined,
    ...forCalls,
    runFlow: async (owned) => (await flows.promise)(owned),
    ...ofSwitches,
    onText: (runId, step, offset, text) => texts.add({ runId, step, offset, text }, inHand.ancestorsOf(runId)),
    onReady: offers.onReady,
    onTasks: (projectId) => companions.tell('onTasks', projectId),
  }
  const loop = createClaimLoop<DefinedRun>({
    ...claims,
    name: 'runs',
    slots,
    ownerId,
    work: workOn({ deps, inHand, claims, companions }),
    onFull: offers.toOthers,
    // A sub-run's end makes its parent ready, and any end in a project with a cap makes room for the next run.
    makesReady: (run) => run.parent_run_id !== null || switches.now().caps.has(run.project_id),
    log,
  })
  const hearing = hearForRuns({ pool, journal, poke, inHand, switches, companions, log })
  const joining: PresenceOptions = { ...options, ...hearing, unwellAfterMs, channels: CHANNELS }
  const presence: Presence = await whileUnavailable(START_PATIENCE_MS, () => startPresence(joining))
  const texts = createLiveTexts({ db: pool, hub, hasOthers, log })
  switches.hearDeleted(inHand.leaveDeleted)
  const ifItFails = 'a sweep failed; trying again'
  const stopSweeping = repeat({ work: sweep, everyMs: SWEEP_EVERY_MS, ifItFails, level: 'debug', log })
  isStarted = true
  poke()

  return {
    onReady: offers.onReady,
    texts,
    isHalted: ofSwitches.isHalted,
    ownerId,
    ...forCalls,
    hasOthers,
    join: companions.join,
    hearDeleted: switches.hearDeleted,
    serveFlows: flows.resolve,
    active: () => loop.active(),
    isRecovering: () => presence.isWatching() && recovery.isWorking(),
    yield: yieldAll,
    hurry: () => {
      yieldAll()
      inHand.interruptAll('hand_back')
    },
    stop: async () => {
      yieldAll()
      await loop.stop()
      clearTimeout(draining)
      await stopSweeping()
      await offers.settled()
      await texts.stop()
      await presence.stop()
      // Other processes may take the runs that were handed back a moment ago.
      if (isWorker) await tellProcesses(pool, READY_CHANNEL).catch(() => {})
    },
  }

  function yieldAll(): void {
    offers.close()
    void stopSweeping()
    loop.close()
    inHand.yieldAll()
    draining ??= setTimeout(() => inHand.interruptAll('hand_back'), options.drainMs)
  }

  async function sweep(): Promise<void> {
    const { seen, mayBeReady } = await recovery.sweep(presence.ownerId())
    heedSeen(seen, { switches, inHand })
    if (isWorker) await loop.sweep({ ...seen, has_ready: seen.has_ready || mayBeReady })
    else if (seen.has_ready) await waitForTools(pool, 'any') // a process with slots finds such runs when it claims
    await forCalls.outages.sweep(seen.outages)
  }
}

/** Acts on facts of the database whose notice may have been lost. */
function heedSeen(seen: RunsSeen, { switches, inHand }: Pick<Hearing, 'switches' | 'inHand'>): void {
  switches.heed(seen.switches)
  for (const id of seen.cancelled) inHand.interrupt(id, 'cancel')
  for (const id of seen.stopped) inHand.askToStop(id)
}

/** The parts of this process that model calls are asked of, in runs and in functions of flows. */
const createForCalls = (parts: Parameters<typeof createOutageWatch>[0]): Pick<RunWorker, 'calls' | 'outages'> => ({
  calls: createProjectCalls(parts),
  outages: createOutageWatch(parts),
})

const depsOf = (switches: FollowedSwitches): Pick<RunDeps, 'isHalted' | 'isMonthLimited' | 'refreshHalted'> => ({
  isHalted: (projectId) => switches.now().halted.has(projectId),
  isMonthLimited: (projectId) => switches.now().limited.has(projectId),
  refreshHalted: switches.refresh,
})

/** Executes runs, and tells the companions of those that have ended or wait. */
function workOn({
  deps,
  inHand,
  claims,
  companions,
}: {
  deps: RunDeps
  inHand: RunsInHand
  claims: RunClaims
  companions: Companions
}) {
  return async (run: DefinedRun): Promise<boolean> => {
    try {
      return await inHand.hold(run, (control) => executeRun(deps, run, run.definition, control))
    } finally {
      claims.onEnd(run.project_id)
      if (run.task_id !== null && run.agent_id !== null) companions.tell('onAttempt', run.agent_id, run.project_id)
      if (run.trigger.eval_id !== undefined && run.parent_run_id === null) companions.tell('onEvalRun', run.project_id)
    }
  }
}

interface Hearing {
  pool: Pool
  journal: Journal
  poke: () => void
  inHand: RunsInHand
  switches: FollowedSwitches
  companions: Companions
  log: Log
}

function hearForRuns({ pool, journal, poke, inHand, switches, companions, log }: Hearing) {
  return {
    onNotification: (channel: string, payload: string): void => {
      if (channel === READY_CHANNEL) poke()
      if (channel === CANCEL_CHANNEL) inHand.interrupt(payload, 'cancel')
      if (channel === STOP_CHANNEL) inHand.askToStop(payload)
      if (channel === HALT_CHANNEL) void switches.refresh().catch(() => {})
      companions.tell('onNotification', channel, payload)
    },
    onListening: (): void => {
      companions.tell('onListening')
      poke()
    },
    onLapse: (): void => {
      inHand.interruptAll('lapse')
      companions.tell('onLapse')
    },
    onDeath: async (workerId: string, forget: (tx: Db) => Promise<boolean>): Promise<void> => {
      const tellAll = (tx: Db, charge: Charge): Promise<void> => companions.onDeath(tx, workerId, charge)
      const count = await takeOver({ pool, journal, onEnded: closeCalls }, workerId, forget, tellAll)
      if (count > 0) log.warn({ worker: workerId, runs: count }, 'runs of a dead process were taken over')
      poke()
    },
  }
}
