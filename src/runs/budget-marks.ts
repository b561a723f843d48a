import { recordAudit } from '../audit/record.ts'
import { inTransaction } from '../db/transaction.ts'
import type { ClaimedRun } from '../journal/claim.ts'
import { crossMarks, hasCrossedMark, holdAllocation } from '../journal/reserve.ts'
import { systemActor } from '../kernel/principal.ts'
import type { RunDeps } from './owned-run.ts'

/** Records each time an agent's use crosses 90 %, 95 % or all of its allocation, each mark once. */
export async function noteMarks(
  { pool, onMarks }: Pick<RunDeps, 'pool' | 'onMarks'>,
  run: ClaimedRun,
  agentId: string,
): Promise<void> {
  if (!(await hasCrossedMark(pool, agentId))) return
  await inTransaction(pool, async (tx) => {
    await holdAllocation(tx, agentId)
    const marks = await crossMarks(tx, agentId)
    if (marks.length === 0) return
    for (const { mark, used, allocation } of marks) {
      await recordAudit(tx, {
        action: 'agent.budget',
        actor: systemActor,
        projectId: run.project_id,
        targetType: 'agent',
        targetId: agentId,
        details: { mark, used, allocation, run_id: run.id },
      })
    }
    await onMarks?.(tx, agentId, marks)
  })
}
