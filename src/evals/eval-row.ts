import { type RowOf, tellInstants } from '../db/instants.ts'
import type { ListedEval } from '../kernel/eval.ts'
import type { SupervisorPart } from '../kernel/supervisor.ts'

/** A variant as it was configured when the eval was made. */
export interface StoredSystem {
  variant: string
  config: SupervisorPart['config']
}

export const EVAL_COLUMNS = `id, project_id, name, status, error_message, variants as compared, total, done, created_at,
  completed_at`

export type EvalRow = RowOf<Omit<ListedEval, 'progress'>> & ListedEval['progress']

export const toListed = ({ total, done, ...row }: EvalRow): ListedEval => ({
  ...tellInstants(row),
  progress: { done, total },
})
