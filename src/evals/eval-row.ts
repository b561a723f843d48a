import type { EvalStatus, ListedEval } from '../kernel/eval.ts'
import type { SupervisorPart } from '../kernel/supervisor.ts'

/** A variant as it was configured when the eval was made. */
export interface StoredSystem {
  variant: string
  config: SupervisorPart['config']
}

export const EVAL_COLUMNS = `id, project_id, name, status, error_message, variants as compared, total, done, created_at,
  completed_at`

export interface EvalRow {
  id: string
  project_id: string
  name: string
  status: EvalStatus
  error_message: string | null
  total: number
  done: number
  created_at: Date
  completed_at: Date | null
  compared: string[]
}

export const toListed = ({
  total,
  done,
  created_at: createdAt,
  completed_at: endedAt,
  ...row
}: EvalRow): ListedEval => ({
  ...row,
  progress: { done, total },
  created_at: createdAt.toISOString(),
  completed_at: endedAt?.toISOString() ?? null,
})
