// A run that waits for others holds no slot. The statement that parks the run decides whether the run sleeps: a cancel,
// an answer or the end of a halt that is committed just before must be seen.
import type { Db } from '../db/pool.ts'
import { isMonthSpent } from '../journal/month.ts'
import type { RunChange } from '../journal/run-change.ts'
import { wakeWaiting } from '../journal/wake.ts'
import { fault } from '../kernel/fault.ts'
import type { RunEvent } from '../kernel/run-event.ts'
import { notBegun, waiting } from './end.ts'
import { append, appendWhere, appendWritten, databaseNow, type OwnedRun, remainingMs } from './owned-run.ts'
import type { Waits } from './settle-calls.ts'
import { askAboutCalls, lockInOrder } from './undecided.ts'

const LOOK_AGAIN_MS = 600_000

/** The run holds no slot until a sub-run ends, a person answers or decides, or the run's time is up. */
export async function park(owned: OwnedRun, waits: Waits): Promise<void> {
  const { signals } = owned.run
  const { count, rejectedAtMs } = waits.approvals ?? { count: 0, rejectedAtMs: null }
  const decisionMs = rejectedAtMs === null ? null : Math.max(0, rejectedAtMs - databaseNow(owned))
  if (waits.human || count > 0) {
    const end = waiting('human', [], signals)
    const set = {
      ...end.set,
      waiting_for: waits.human ? 'person' : 'approval',
      ...(decisionMs === null ? {} : { ready_in_ms: Math.ceil(decisionMs) }),
    }
    await appendWait(owned, { ...waits, isStill: false }, end.event, { set })
    if (decisionMs !== null) owned.deps.onReady(decisionMs)
  } else {
    const leftMs = remainingMs(owned)
    // A run below that continues wakes this one. If its process dies before it does so, this one looks again.
    const untilDeadlineMs = leftMs !== null && waits.isStill ? Math.max(leftMs, LOOK_AGAIN_MS) : leftMs
    // An earlier release does not read tool.cut_off; it doubts all calls but these.
    const pending = [...owned.state.pending.values()]
    const doubted = pending.some((call) => call.isUnknown) ? { not_begun: notBegun(owned.state) } : {}
    const set = {
      waits_for: 'children',
      release: true,
      seen_signals: signals,
      ...(untilDeadlineMs === null ? {} : { ready_in_ms: Math.max(0, Math.ceil(untilDeadlineMs)) }),
    } as const
    const event: RunEvent = { kind: 'run.parked', data: { waits_for: 'children', ...doubted } }
    await appendWait(owned, waits, event, { set })
    if (untilDeadlineMs !== null) owned.deps.onReady(untilDeadlineMs)
  }
  await fault('park.after_commit')
}

/**
 * In the same commit people are asked about calls whose outcome is unknown, and a run that stands still is marked: a run
 * below that continues wakes it.
 */
async function appendWait(
  owned: OwnedRun,
  { undecided = [], isStill = false }: Pick<Waits, 'undecided' | 'isStill'>,
  event: RunEvent,
  change: RunChange,
): Promise<void> {
  if (undecided.length === 0 && !isStill) return append(owned, [event], change)
  const { id, fence, ancestors } = owned.run
  await appendWritten(owned, async (tx) => {
    await lockInOrder(tx, [id, ...ancestors])
    await askAboutCalls(tx, owned, undecided)
    if (isStill) await tx.query('update agent_runs set stands_still = true where id = $1 and fence = $2', [id, fence])
    return { events: [event], change }
  })
}

/**
 * The run holds no slot until the off switch is released. The project's row is locked: a release is committed before,
 * and the run does not park, or after, and finds the parked run. Returns false if there is no halt.
 */
export async function parkHalted(owned: OwnedRun): Promise<boolean> {
  const { run, deps } = owned
  const end = waiting('halted', notBegun(owned.state), run.signals)
  const isParked = await appendWhere(owned, (tx) => isHalted(tx, run.project_id), [end.event], { set: end.set })
  if (isParked) await fault('final.after_commit')
  else await deps.refreshHalted()
  return isParked
}

/**
 * The run holds no slot until the next month or a higher limit. The limit is locked, so that a change of it finds the
 * parked run. Returns false if there are tokens again.
 */
export async function parkForMonth(owned: OwnedRun, inMs: number): Promise<boolean> {
  const { event, set } = waiting('budget', notBegun(owned.state), owned.run.signals)
  const change = { set: { ...set, waits_for: 'month', ready_in_ms: inMs } } as const
  const isParked = await appendWhere(owned, (tx) => isMonthSpent(tx, owned.run.project_id), [event], change)
  if (isParked) await fault('final.after_commit')
  return isParked
}

/** A reservation settles at the latest when its owner is found dead. The run asks again then, or after a second. */
export async function parkForBudget(owned: OwnedRun): Promise<void> {
  await append(owned, [{ kind: 'run.parked', data: { waits_for: 'budget' } }], {
    set: { waits_for: 'budget', release: true, ready_in_ms: 1_000 },
  })
  owned.deps.onReady(1_000)
}

const ASK_FOR_TOKENS_EVERY_MS = 60_000

/**
 * The run is part of an attempt at a task whose agent has no tokens. The attempt is woken, pauses, and wakes this run
 * when its agent has tokens. The run asks again from time to time, in case this process dies before the attempt is woken.
 */
export async function parkForTokens(owned: OwnedRun, attemptRunId: string): Promise<void> {
  const { event, set } = waiting('budget', notBegun(owned.state), owned.run.signals)
  await append(owned, [event], { set: { ...set, ready_in_ms: ASK_FOR_TOKENS_EVERY_MS } })
  if (await wakeWaiting(owned.deps.pool, attemptRunId, 'children')) owned.deps.onReady()
}

/** The off switch as it is now. It cannot be changed before the transaction ends. */
export async function isHalted(tx: Db, projectId: string): Promise<boolean> {
  const { rows } = await tx.query<{ is_halted: boolean }>(
    'select halted_at is not null as is_halted from projects where id = $1 for share',
    [projectId],
  )
  // The run of a removed project is removed with the project.
  return rows[0]?.is_halted ?? true
}
