import { recordAudit } from '../audit/record.ts'
import type { ClaimedRun } from '../journal/claim.ts'
import { crossMarks } from '../journal/reserve.ts'
import { systemActor } from '../kernel/principal.ts'
import type { RunDeps } from './session.ts'

/** 90 %, 95 % and all of an agent's allocation are recorded when they are crossed, each once. */
export async function noteMarks({ pool }: Pick<RunDeps, 'pool'>, run: ClaimedRun): Promise<void> {
  for (const { mark, used, allocation } of await crossMarks(pool, run.agent_id)) {
    await recordAudit(pool, {
      action: 'agent.budget',
      actor: systemActor,
      projectId: run.project_id,
      targetType: 'agent',
      targetId: run.agent_id,
      details: { mark, used, allocation, run_id: run.id },
    })
  }
}
