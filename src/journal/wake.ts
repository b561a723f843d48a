import type { Db } from '../db/pool.ts'

export const READY_CHANNEL = 'muster_ready'
export const CANCEL_CHANNEL = 'muster_cancel'
export const HALT_CHANNEL = 'muster_halt'
/** A leaf of the flow run that is named has ended, or it was cancelled. */
export const FLOW_CHANNEL = 'muster_flow'

/** The run waits for this no longer and wants a slot. Nothing happens where it does not wait for it. */
export async function wakeWaiting(db: Db, runId: string, waitsFor: 'human' | 'children'): Promise<boolean> {
  const { rowCount } = await db.query(
    'update agent_runs set ready_at = muster.now() where id = $1 and owner is null and completed_at is null and waits_for = $2',
    [runId, waitsFor],
  )
  return rowCount === 1
}

/** The off switch was released: its runs go on under the same ids. */
export async function wakeHalted(db: Db, projectId: string): Promise<number> {
  const { rowCount } = await db.query(
    `update agent_runs set ready_at = muster.now()
     where project_id = $1 and status = 'paused' and pause_reason = 'halted' and owner is null`,
    [projectId],
  )
  return rowCount ?? 0
}

/** Says to every process that something happened. Where this is lost, their next sweep sees it. */
export async function tellProcesses(db: Db, channel: string, payload = ''): Promise<void> {
  await db.query('select pg_notify($1, $2)', [channel, payload])
}
