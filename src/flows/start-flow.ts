import { changeAudited } from '../audit/record.ts'
import type { Db } from '../db/pool.ts'
import type { FlowNode } from '../kernel/flow.ts'
import { newId } from '../kernel/id.ts'
import type { Actor } from '../kernel/principal.ts'
import { expectedDuration } from './expected-duration.ts'
import { ownFunctions } from './own-functions.ts'
import { plannedLeaves } from './planned-leaves.ts'
import { withLearntTopologies } from './topology-results.ts'

export interface NewFlowRun {
  projectId: string
  flowId: string | null
  /** Has been validated. */
  root: FlowNode
  input: unknown
  timeoutMs: number
  workers: number | null
}

/** From this commit on the flow run is never lost. Answers its id. */
export async function startFlow(db: Db, run: NewFlowRun, actor: Actor): Promise<string> {
  const id = newId()
  const root = await withLearntTopologies(db, run.projectId, run.root)
  const total = plannedLeaves(run.root)
  const progress = { total, pending: total, running: 0, completed: 0, failed: 0, skipped: 0 }
  await changeAudited(db, {
    sql: `insert into flow_runs (id, project_id, flow_id, root, input, timeout, workers, progress, expected, needs)
          values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) returning id`,
    values: [
      id,
      run.projectId,
      run.flowId,
      JSON.stringify(root),
      JSON.stringify(run.input ?? null),
      run.timeoutMs,
      run.workers,
      JSON.stringify(progress),
      expectedDuration(run),
      ownFunctions(run.root),
    ],
    note: {
      action: 'flow.start',
      actor,
      projectId: run.projectId,
      targetType: 'flow_run',
      targetId: id,
      details: run.flowId === null ? {} : { flow_id: run.flowId },
    },
  })
  return id
}
