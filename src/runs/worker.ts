// One process's part in the work: it claims runs into its slots, keeps its lease, hears of cancels and halts, takes over
// what the dead leave behind, and gives back what it holds when it stops.
import { explainFailure } from '../db/failures.ts'
import type { Pool } from '../db/pool.ts'
import { type ClaimedRun, claimRuns, isSuspectWaiting } from '../journal/claim.ts'
import type { Hub } from '../journal/hub.ts'
import { createLiveTexts, type LiveTexts } from '../journal/live-text.ts'
import { releaseOwn, releaseOwnerless, takeOver } from '../journal/take-over.ts'
import { CANCEL_CHANNEL, FLOW_CHANNEL, HALT_CHANNEL, READY_CHANNEL, tellProcesses } from '../journal/wake.ts'
import { fault } from '../kernel/fault.ts'
import type { Log } from '../kernel/log.ts'
import { createDispatcher } from '../queue/dispatcher.ts'
import { type Presence, startPresence } from '../queue/presence.ts'
import { findCancelled } from './cancel.ts'
import { createDefinitions } from './definitions.ts'
import { executeRun } from './execute-run.ts'
import { haltedProjects } from './halt.ts'
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
  deps: Omit<RunDeps, 'isHalted' | 'onText' | 'onReady'>
}

export interface RunWorker {
  /** Runs became ready: taken here where a slot is free, offered to other processes where none is. */
  onReady(inMs?: number): void
  texts: LiveTexts
  /** The project's off switch is on, as far as this process has heard. */
  isHalted(projectId: string): boolean
  /** Under which this process owns what it works on. */
  ownerId(): string
  /** Other processes live over the same database, as far as this one has seen. */
  hasOthers(): boolean
  /** Whoever else works in this process's name hears what concerns it. */
  join(companion: Companion): void
  /** How many runs are under way here. */
  active(): number
  /** Takes no new run, and asks those under way to give their slots back at their next step. Their calls drain from now on. */
  yield(): void
  /** Calls under way are cut off, and their runs handed back. */
  hurry(): void
  stop(): Promise<void>
}

export interface Companion {
  onNotification(channel: string, payload: string): void
  /** What this process owns may be another's. */
  onLapse(): void
}

const SWEEP_EVERY_MS = 1_000
/** What is due later than this is left to the sweeps. */
const LONGEST_TIMER_MS = 60_000

interface Claimed extends ClaimedRun {
  definition: Definition | null
}

export async function startRunWorker(options: WorkerOptions): Promise<RunWorker> {
  const { pool, hub, log } = options
  const controls = new Map<string, RunControl>()
  const define = createDefinitions(pool)
  const ancestorsOf = new Map<string, readonly string[]>()
  let halted: ReadonlySet<string> = await haltedProjects(pool)
  /** Runs may be ours in the database and in nobody's hands: a claim or a write was cut off. */
  let mayHaveStrays = true
  let releasing: Promise<void> | null = null
  const companions: Companion[] = []
  let isStarted = false
  let isStopped = false
  let draining: NodeJS.Timeout | undefined

  const deps: RunDeps = {
    ...options.deps,
    isHalted: (projectId) => halted.has(projectId),
    onText: (runId, step, offset, text) => texts.add({ runId, step, offset, text }, ancestorsOf.get(runId) ?? []),
    onReady,
  }
  const dispatcher = createDispatcher<Claimed>({
    slots: options.slots,
    claim,
    isSuspectWaiting: () => isSuspectWaiting(pool),
    work,
    onFull: offerToOthers,
    onYield: (isUrgent) => {
      for (const control of controls.values()) {
        if (isUrgent) control.interrupt('hand_back')
        else control.askToYield()
      }
    },
    log,
  })
  const presence: Presence = await startPresence({
    url: options.url,
    pool,
    slots: options.slots,
    leaseMs: options.leaseMs,
    isAlone: options.isAlone,
    channels: [READY_CHANNEL, CANCEL_CHANNEL, HALT_CHANNEL, FLOW_CHANNEL],
    log,
    onNotification,
    onListening: poke,
    onDeath: async (workerId, forget) => {
      const count = await takeOver(pool, workerId, forget)
      if (count > 0) log.warn({ worker: workerId, runs: count }, 'runs of a dead process were taken over')
      poke()
    },
    onLapse: () => {
      for (const control of controls.values()) control.interrupt('lapse')
      for (const companion of companions) companion.onLapse()
    },
    onReturn: async () => {
      mayHaveStrays = true
    },
  })
  const texts = createLiveTexts({ db: pool, hub, hasOthers: () => presence.hasOthers(), log })
  let offering: Promise<void> | null = null
  const sweeping = sweep()
  isStarted = true
  poke()

  return {
    onReady,
    texts,
    isHalted: (projectId) => halted.has(projectId),
    ownerId: () => presence.ownerId(),
    hasOthers: () => presence.hasOthers(),
    join: (companion) => void companions.push(companion),
    active: () => dispatcher.active(),
    yield: yieldAll,
    hurry: () => {
      yieldAll()
      handBackAll()
    },
    stop: async () => {
      yieldAll()
      await dispatcher.stop()
      clearTimeout(draining)
      await sweeping
      await offering
      await texts.stop()
      await presence.stop()
      // What was handed back a moment ago is for somebody else to take.
      if (options.slots > 0) await tellProcesses(pool, READY_CHANNEL).catch(() => {})
    },
  }

  function onReady(inMs = 0): void {
    if (isStopped) return
    if (inMs > 0) {
      // Without a timer here it would be seen by a sweep, up to a second late.
      if (inMs < LONGEST_TIMER_MS) setTimeout(onReady, inMs + 1).unref()
      return
    }
    if (dispatcher.free() > 0) dispatcher.poke()
    else offerToOthers()
  }

  function yieldAll(): void {
    isStopped = true
    dispatcher.close()
    for (const control of controls.values()) control.askToYield()
    draining ??= setTimeout(handBackAll, options.drainMs)
  }

  function handBackAll(): void {
    for (const control of controls.values()) control.interrupt('hand_back')
  }

  /** What is heard while this process is being set up is looked for when it is. */
  function poke(): void {
    if (isStarted) dispatcher.poke()
  }

  function offerToOthers(): void {
    // Who joins meanwhile looks by itself.
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
    if (channel === HALT_CHANNEL) void refreshHalted().catch(() => {})
    for (const companion of companions) companion.onNotification(channel, payload)
  }

  async function claim(limit: number, suspects: boolean): Promise<Claimed[]> {
    await fault('claim.before')
    await releasing
    try {
      const runs = await claimRuns(pool, { owner: presence.ownerId(), limit, suspects })
      const definitionOf = runs.length > 0 ? await define(runs) : () => null
      return runs.map((run) => ({ ...run, definition: definitionOf(run) }))
    } catch (error) {
      mayHaveStrays = true
      throw error
    }
  }

  async function work(run: Claimed): Promise<void> {
    const control = createRunControl()
    controls.set(run.id, control)
    // It was claimed while this process began to stop.
    if (isStopped) control.askToYield()
    if (run.ancestors.length > 0) ancestorsOf.set(run.id, run.ancestors)
    hub.poke(run.id)
    try {
      const isSettled = await executeRun(deps, run, run.definition, control)
      if (!isSettled) mayHaveStrays = true
    } finally {
      controls.delete(run.id)
      ancestorsOf.delete(run.id)
      texts.drop(run.id)
    }
  }

  async function sweep(): Promise<void> {
    while (!isStopped) {
      try {
        await refreshHalted()
        for (const id of await findCancelled(pool, presence.ownerId())) controls.get(id)?.interrupt('cancel')
        if (mayHaveStrays && !dispatcher.isClaiming()) await releaseStrays()
        await releaseOwnerless(pool)
        if (options.slots > 0) void dispatcher.sweep().catch(() => {})
      } catch (error) {
        if (explainFailure(error)?.code !== 'UNAVAILABLE') log.warn({ err: error }, 'a sweep failed; trying again')
      }
      await nextSweep()
    }
  }

  async function releaseStrays(): Promise<void> {
    mayHaveStrays = false
    // Nothing is claimed meanwhile: it would not be on this list, and be taken for a stray.
    const released = releaseOwn(pool, presence.ownerId(), [...controls.keys()])
    releasing = released.then(
      (count) => {
        if (count > 0) log.info({ runs: count }, 'runs that were in nobody’s hands are ready again')
      },
      () => {
        mayHaveStrays = true
      },
    )
    await released
  }

  async function refreshHalted(): Promise<void> {
    halted = await haltedProjects(pool)
  }

  async function nextSweep(): Promise<void> {
    for (let waited = 0; waited < SWEEP_EVERY_MS && !isStopped; waited += 100) {
      await new Promise((resolve) => setTimeout(resolve, 100).unref())
    }
  }
}
