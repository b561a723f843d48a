import { changeAudited, recordAudits } from '../../audit/record.ts'
import { MARK_CHANGED } from '../../db/changed-in.ts'
import type { Db, Pool } from '../../db/pool.ts'
import { inTransaction } from '../../db/transaction.ts'
import { FLOW_CHANNEL, tellAbout, tellProcesses } from '../../journal/wake.ts'
import { type Actor, systemActor } from '../../kernel/principal.ts'
import { INNER_FIRST } from './journal.ts'

const CANCELLED = `cancel_requested_at = muster.now(), ${MARK_CHANGED},
  ready_at = case when owner is null then muster.now() else ready_at end`
const MAY_CANCEL = 'completed_at is null and cancel_requested_at is null'

/**
 * Records the cancel. The owner of the flow run is told; a run without an owner is made ready, so that a process ends
 * it. False: the run had ended, was cancelled before, or does not exist.
 */
export async function cancelFlow(db: Db, projectId: string, flowRunId: string, actor: Actor): Promise<boolean> {
  const rows = await changeAudited<{ id: string }>(db, {
    sql: `update flow_runs set ${CANCELLED} where id = $1 and project_id = $2 and ${MAY_CANCEL} returning id`,
    values: [flowRunId, projectId],
    note: { action: 'flow.cancel', actor, projectId, targetType: 'flow_run', targetId: flowRunId },
  })
  if (rows.length === 0) return false
  await tellProcesses(db, FLOW_CHANNEL, flowRunId)
  return true
}

const FLOWS_AT_ONCE = 500

/** Tells the flow runs below, at every level, to begin nothing new. They drain beside this one. */
export async function cancelFlowsBelow(pool: Pool, projectId: string, flowRunId: string): Promise<void> {
  for (;;) {
    const count = await inTransaction(pool, (tx) => cancelSomeBelow(tx, projectId, flowRunId))
    if (count < FLOWS_AT_ONCE) return
  }
}

async function cancelSomeBelow(tx: Db, projectId: string, flowRunId: string): Promise<number> {
  const { rows } = await tx.query<{ id: string }>(
    `update flow_runs set ${CANCELLED} where id in (
       select id from flow_runs where ${MAY_CANCEL}
         and id in (select started_flow_run_id from muster.runs_below_flow($1))
       order by ${INNER_FIRST} limit ${FLOWS_AT_ONCE} for no key update)
     returning id`,
    [flowRunId],
  )
  const ids = rows.map((row) => row.id)
  if (ids.length === 0) return 0
  const note = { action: 'flow.cancel', actor: systemActor, projectId, targetType: 'flow_run' }
  const notes = ids.map((targetId) => ({ ...note, targetId }))
  await recordAudits(tx, notes)
  await tellAbout(tx, FLOW_CHANNEL, ids)
  return ids.length
}
