// A run that waits for others holds no slot. The statement that parks the run decides whether it sleeps, never a look
// before: a cancel, an answer or the end of a halt that is committed in between must be seen.
import type { Db } from '../db/pool.ts'
import { isMonthSpent } from '../journal/month.ts'
import { fault } from '../kernel/fault.ts'
import { waiting } from './end.ts'
import type { RunState } from './run-state.ts'
import { append, appendWhere, remainingMs, type Session } from './session.ts'
import type { Waits } from './settle-calls.ts'

/** The run holds no slot until a sub-run ends, a person answers, or the run's time is up. */
export async function park(session: Session, waits: Waits): Promise<void> {
  const { signals } = session.run
  if (waits.human) {
    const end = waiting('human', [], signals)
    await append(session, [end.event], { set: end.set })
  } else {
    const leftMs = remainingMs(session)
    await append(session, [{ kind: 'run.parked', data: { waits_for: 'children' } }], {
      set: {
        waits_for: 'children',
        release: true,
        seen_signals: signals,
        ...(leftMs === null ? {} : { ready_in_ms: Math.max(0, Math.ceil(leftMs)) }),
      },
    })
    if (leftMs !== null) session.deps.onReady(leftMs)
  }
  await fault('park.after_commit')
}

/**
 * The run holds no slot until the project's off switch is released. The project's row is locked meanwhile: a release is
 * committed before, and the run does not park, or after, and finds the run parked. False: there is no halt.
 */
export async function parkHalted(session: Session): Promise<boolean> {
  const { run, deps } = session
  const end = waiting('halted', notBegun(session.state), run.signals)
  const isParked = await appendWhere(session, (tx) => isHalted(tx, run.project_id), [end.event], { set: end.set })
  if (isParked) await fault('final.after_commit')
  else await deps.refreshHalted()
  return isParked
}

/**
 * The run holds no slot until the next month, or until the project's limit is raised. The limit is locked meanwhile, so
 * that a limit which is raised at this moment finds the run parked. False: there are tokens again.
 */
export async function parkForMonth(session: Session, inMs: number): Promise<boolean> {
  const { event, set } = waiting('budget', notBegun(session.state), session.run.signals)
  const change = { set: { ...set, waits_for: 'month', ready_in_ms: inMs } } as const
  const isParked = await appendWhere(session, (tx) => isMonthSpent(tx, session.run.project_id), [event], change)
  if (isParked) await fault('final.after_commit')
  return isParked
}

async function isHalted(tx: Db, projectId: string): Promise<boolean> {
  const { rows } = await tx.query<{ is_halted: boolean }>(
    'select halted_at is not null as is_halted from projects where id = $1 for share',
    [projectId],
  )
  // The run of a project that is gone goes with the project.
  return rows[0]?.is_halted ?? true
}

/** Calls that were announced and that nobody has begun. */
export const notBegun = (state: RunState): string[] =>
  [...state.pending.values()].filter((call) => !call.hasBegun && !call.isUnknown).map((call) => call.id)
