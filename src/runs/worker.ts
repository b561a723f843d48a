// One process's part in the work: it claims runs into its slots, keeps its lease, hears of cancels and halts, takes
// over the runs of dead processes, and gives its own back when it stops.
import { START_PATIENCE_MS, whileUnavailable } from '../db/patience.ts'
import type { Db, Pool } from '../db/pool.ts'
import type { Charge, Dealt, FairAsk } from '../db/queue-table.ts'
import { type ClaimedRun, claimSuspectRun, promoteDueRuns, releaseSuspectRun } from '../journal/claim.ts'
import type { Hub } from '../journal/hub.ts'
import { createLiveTexts, type LiveTexts } from '../journal/live-text.ts'
import { createProjectCalls, type ProjectCalls } from '../journal/project-calls.ts'
import { releaseOwn, takeOver } from '../journal/take-over.ts'
import {
  CANCEL_CHANNEL,
  EVAL_CHANNEL,
  FLOW_CHANNEL,
  HALT_CHANNEL,
  READY_CHANNEL,
  STOP_CHANNEL,
  tellProcesses,
} from '../journal/wake.ts'
import { fault } from '../kernel/fault.ts'
import type { Log } from '../kernel/log.ts'
import { PROMPT_CHANNEL } from '../prompts/write-prompt.ts'
import { createClaimLoop } from '../queue/claim-loop.ts'
import { UNWELL_AFTER_MS } from '../queue/health.ts'
import { type Presence, type PresenceOptions, startPresence } from '../queue/presence.ts'
import { createSlots } from '../queue/slots.ts'
import { TASK_CHANNEL } from '../tasks/task-queue.ts'
import { createCappedClaims } from './capped-claims.ts'
import { createDefinitions } from './definitions.ts'
import { executeRun } from './execute-run.ts'
import { type ProjectSwitches, readSwitches } from './project-switches.ts'
import { createRecovery } from './recover-runs.ts'
import { createRunControl, type RunControl } from './run-control.ts'
import type { Definition, RunDeps } from './session.ts'

export interface WorkerOptions {
  url: string
  pool: Pool
  hub: Hub
  log: Log
  /** 0: this process starts runs and shows them, and works on none. */
  slots: number
  leaseMs: number
  /** Calls under way may end by themselves for so long when this process stops. */
  drainMs: number
  isAlone: boolean
  /** Recovery that has not succeeded for so long makes this process unready. */
  unwellAfterMs?: number
  deps: Omit<RunDeps, 'isHalted' | 'isMonthLimited' | 'refreshHalted' | 'onText' | 'onReady' | 'calls'>
}

export interface RunWorker {
  /** Runs became ready: taken here where a slot is free, offered to other processes where none is. */
  onReady(inMs?: number): void
  texts: LiveTexts
  /** The project's off switch is on, as far as this process has heard. */
  isHalted(projectId: string): boolean
  /** The name under which this process owns its runs. */
  ownerId(): string
  /** Model calls that no agent makes; the process has one such account. */
  calls: ProjectCalls
  /** Other processes live over the same database, as far as this one has seen. */
  hasOthers(): boolean
  /** Other workers in this process that share its name hear of its notifications, its lapse, and deaths. */
  join(companion: Companion): void
  /**
   * Called with the projects that were deleted and whose rows are not all gone, once a second while there are any, and
   * once more when there are none.
   */
  hearDeleted(listener: (projectIds: ReadonlySet<string>) => void): void
  /** The number of runs under way here. */
  active(): number
  /** The runs of dead processes are found, and runs that are due wake. */
  isRecovering(): boolean
  /** Takes no new run, and asks those under way to give their slots back at their next step. Their calls drain from now on. */
  yield(): void
  /** Calls under way are cut off, and their runs handed back. */
  hurry(): void
  stop(): Promise<void>
}

export interface Companion {
  onNotification(channel: string, payload: string): void
  /** A new connection listens: notifications may have been lost before it. */
  onListening?(): void
  /** The rows that this process owns may be another's by now. */
  onLapse?(): void
  /** Another process has died: its work is freed in this transaction. */
  onDeath?(tx: Db, workerId: string, charge: Charge): Promise<void>
  /** Agents of the project were given tasks. */
  onTasks?(projectId: string): void
  /** The run of a task has ended, or waits: its agent may take up another. */
  onAttempt?(agentId: string, projectId: string): void
  /** The run of a case of an eval has ended, or waits. */
  onEvalRun?(projectId: string): void
}

const SWEEP_EVERY_MS = 1_000
/** Runs that are due later than this are left to the sweeps. */
const LONGEST_TIMER_MS = 60_000

interface Claimed extends ClaimedRun {
  definition: Definition | null
}

export async function startRunWorker(options: WorkerOptions): Promise<RunWorker> {
  const { pool, hub, log, unwellAfterMs = UNWELL_AFTER_MS } = options
  const { journal } = options.deps
  const controls = new Map<string, RunControl>()
  const define = createDefinitions(pool)
  const recovery = createRecovery({ pool, journal, log }, unwellAfterMs)
  const slots = createSlots(options.slots)
  const capped = createCappedClaims({ pool, slots })
  const ancestorsOf = new Map<string, readonly string[]>()
  let switches: ProjectSwitches = await whileUnavailable(START_PATIENCE_MS, () => readSwitches(pool))
  const companions: Companion[] = []
  const projectOf = new Map<string, string>()
  const hearDeleted = [leaveDeleted]
  let isStarted = false
  let isStopped = false
  let draining: NodeJS.Timeout | undefined
  /** Ends the time between two sweeps. */
  let endPause = (): void => {}

  const isHalted = (projectId: string): boolean => switches.halted.has(projectId)
  const calls = createProjectCalls({ pool, ownerId: () => presence.ownerId() })
  const deps: RunDeps = {
    ...options.deps,
    calls,
    isHalted,
    isMonthLimited: (projectId) => switches.limited.has(projectId),
    refreshHalted: refreshSwitches,
    onText: (runId, step, offset, text) => texts.add({ runId, step, offset, text }, ancestorsOf.get(runId) ?? []),
    onReady,
    onTasks: (projectId) => {
      for (const companion of companions) companion.onTasks?.(projectId)
    },
  }
  const loop = createClaimLoop<Claimed>({
    name: 'runs',
    slots,
    ownerId: () => presence.ownerId(),
    claim,
    claimSuspect: async (owner, lastProjectId) => {
      const run = await claimSuspectRun(pool, owner, lastProjectId)
      return run && ((await withDefinitions([run]))[0] ?? null)
    },
    releaseSuspect: (owner) => releaseSuspectRun(pool, owner),
    work,
    freeStrays: async (owner, inHand) => {
      const count = await releaseOwn(
        { pool, journal },
        owner,
        inHand.map((run) => run.id),
      )
      if (count > 0) log.info({ runs: count }, 'runs that were in nobody’s hands are ready again')
    },
    onFull: offerToOthers,
    // A sub-run's end makes its parent ready, and any end in a project with a cap makes room for the next run.
    makesReady: (run) => run.parent_run_id !== null || switches.caps.has(run.project_id),
    log,
  })
  const joining: PresenceOptions = {
    url: options.url,
    pool,
    slots: options.slots,
    leaseMs: options.leaseMs,
    isAlone: options.isAlone,
    unwellAfterMs,
    channels: [
      ...[READY_CHANNEL, CANCEL_CHANNEL, STOP_CHANNEL, HALT_CHANNEL],
      ...[FLOW_CHANNEL, TASK_CHANNEL, PROMPT_CHANNEL, EVAL_CHANNEL],
    ],
    log,
    onNotification,
    onListening: () => {
      for (const companion of companions) companion.onListening?.()
      poke()
    },
    onDeath: takeOverFrom,
    onLapse: () => {
      for (const control of controls.values()) control.interrupt('lapse')
      for (const companion of companions) companion.onLapse?.()
    },
    onReturn: async () => {},
  }
  const presence: Presence = await whileUnavailable(START_PATIENCE_MS, () => startPresence(joining))
  const texts = createLiveTexts({ db: pool, hub, hasOthers: () => presence.hasOthers(), log })
  let offering: Promise<void> | null = null
  const sweeping = sweep()
  isStarted = true
  poke()

  return {
    onReady,
    texts,
    isHalted,
    ownerId: () => presence.ownerId(),
    calls,
    hasOthers: () => presence.hasOthers(),
    join: (companion) => void companions.push(companion),
    hearDeleted: (listener) => void hearDeleted.push(listener),
    active: () => loop.active(),
    isRecovering: () => presence.isWatching() && recovery.isWorking(),
    yield: yieldAll,
    hurry: () => {
      yieldAll()
      handBackAll()
    },
    stop: async () => {
      yieldAll()
      await loop.stop()
      clearTimeout(draining)
      await sweeping
      await offering
      await texts.stop()
      await presence.stop()
      // Other processes may take the runs that were handed back a moment ago.
      if (options.slots > 0) await tellProcesses(pool, READY_CHANNEL).catch(() => {})
    },
  }

  function onReady(inMs = 0): void {
    if (isStopped) return
    if (inMs > 0) {
      // Without this timer a sweep would wake the run, up to a second late.
      if (inMs < LONGEST_TIMER_MS) setTimeout(wakeDue, inMs + 1).unref()
      return
    }
    if (slots.free() > 0) loop.poke()
    else offerToOthers()
  }

  function wakeDue(): void {
    promoteDueRuns(pool).then(
      () => onReady(),
      (error: unknown) => log.debug({ err: error }, 'runs that are due will be woken by the next sweep'),
    )
  }

  function yieldAll(): void {
    isStopped = true
    endPause()
    loop.close()
    for (const control of controls.values()) control.askToYield()
    draining ??= setTimeout(handBackAll, options.drainMs)
  }

  function handBackAll(): void {
    for (const control of controls.values()) control.interrupt('hand_back')
  }

  /** Notices that come before this process is set up are covered by its first look for runs. */
  function poke(): void {
    if (isStarted) loop.poke()
  }

  function offerToOthers(): void {
    // A process that joins meanwhile looks by itself.
    if (options.slots > 0 && !presence.hasOthers()) return
    offering ??= tellProcesses(pool, READY_CHANNEL)
      .catch((error: unknown) => log.debug({ err: error }, 'other processes will see ready runs at their next sweep'))
      .finally(() => {
        offering = null
      })
  }

  function onNotification(channel: string, payload: string): void {
    if (channel === READY_CHANNEL) poke()
    if (channel === CANCEL_CHANNEL) controls.get(payload)?.interrupt('cancel')
    if (channel === STOP_CHANNEL) controls.get(payload)?.askToStop()
    if (channel === HALT_CHANNEL) void refreshSwitches().catch(() => {})
    for (const companion of companions) companion.onNotification(channel, payload)
  }

  async function takeOverFrom(workerId: string, forget: (tx: Db) => Promise<boolean>): Promise<void> {
    const count = await takeOver({ pool, journal }, workerId, forget, async (tx, charge) => {
      for (const companion of companions) await companion.onDeath?.(tx, workerId, charge)
    })
    if (count > 0) log.warn({ worker: workerId, runs: count }, 'runs of a dead process were taken over')
    poke()
  }

  async function claim(ask: Omit<FairAsk, 'leftOut'>): Promise<Dealt<Claimed>> {
    await fault('claim.before')
    const dealt = await capped.claim(ask, switches)
    return { ...dealt, claimed: await withDefinitions(dealt.claimed) }
  }

  async function withDefinitions(runs: readonly ClaimedRun[]): Promise<Claimed[]> {
    if (runs.length === 0) return []
    const definitionOf = await define(runs)
    return runs.map((run) => ({ ...run, definition: definitionOf(run) }))
  }

  async function work(run: Claimed): Promise<boolean> {
    const control = createRunControl()
    controls.set(run.id, control)
    projectOf.set(run.id, run.project_id)
    // The run was claimed while this process began to stop.
    if (isStopped) control.askToYield()
    if (run.ancestors.length > 0) ancestorsOf.set(run.id, run.ancestors)
    hub.poke(run.id)
    try {
      return await executeRun(deps, run, run.definition, control)
    } finally {
      // A run that was lost may have been claimed here again meanwhile.
      if (controls.get(run.id) === control) {
        controls.delete(run.id)
        projectOf.delete(run.id)
        ancestorsOf.delete(run.id)
        texts.drop(run.id)
      }
      capped.onEnd(run.project_id)
      if (run.task_id !== null && run.agent_id !== null)
        for (const companion of companions) companion.onAttempt?.(run.agent_id, run.project_id)
      if (run.trigger.eval_id !== undefined && run.parent_run_id === null)
        for (const companion of companions) companion.onEvalRun?.(run.project_id)
    }
  }

  async function sweep(): Promise<void> {
    while (!isStopped) {
      try {
        const { seen, mayBeReady } = await recovery.sweep(presence.ownerId())
        heed(seen.switches)
        for (const id of seen.cancelled) controls.get(id)?.interrupt('cancel')
        for (const id of seen.stopped) controls.get(id)?.askToStop()
        if (options.slots > 0) await loop.sweep({ ...seen, has_ready: seen.has_ready || mayBeReady })
      } catch (error) {
        log.debug({ err: error }, 'a sweep failed; trying again')
      }
      if (!isStopped) await nextSweep()
    }
  }

  async function refreshSwitches(): Promise<void> {
    heed(await readSwitches(pool))
  }

  function heed(next: ProjectSwitches): void {
    const before = switches.deleted
    switches = next
    if (before.size > 0 || switches.deleted.size > 0) for (const hear of hearDeleted) hear(switches.deleted)
  }

  /** The calls of deleted projects are cut off, and nothing more is written: the rows are about to go. */
  function leaveDeleted(projectIds: ReadonlySet<string>): void {
    for (const [runId, projectId] of projectOf) if (projectIds.has(projectId)) controls.get(runId)?.interrupt('lapse')
  }

  async function nextSweep(): Promise<void> {
    await new Promise<void>((resolve) => {
      endPause = resolve
      setTimeout(resolve, SWEEP_EVERY_MS).unref()
    })
  }
}
