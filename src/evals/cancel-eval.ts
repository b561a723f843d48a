import { changeAudited } from '../audit/record.ts'
import type { Db } from '../db/pool.ts'
import { EVAL_CHANNEL, tellProcesses } from '../journal/wake.ts'
import type { ListedEval } from '../kernel/eval.ts'
import type { Actor } from '../kernel/principal.ts'
import { getListed } from './read-evals.ts'

/**
 * Cancels an eval. After the commit no run is started for it; the processes are notified, and one cancels the open
 * runs. An eval that has ended is unchanged.
 */
export async function cancelEval(tx: Db, projectId: string, evalId: string, actor: Actor): Promise<ListedEval> {
  const { id } = await getListed(tx, projectId, evalId)
  const rows = await changeAudited(tx, {
    sql: `update evals set status = 'cancelled', completed_at = muster.now()
          where id = $1 and project_id = $2 and status = 'running' returning id`,
    values: [id, projectId],
    note: { action: 'eval.cancel', actor, projectId, targetType: 'eval', targetId: id },
  })
  if (rows.length > 0) await tellProcesses(tx, EVAL_CHANNEL, projectId)
  return getListed(tx, projectId, id)
}
