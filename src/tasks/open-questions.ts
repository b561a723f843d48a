import type { Db } from '../db/pool.ts'
import type { Task } from '../kernel/task.ts'
import { TASK_COLUMNS, type TaskRow, toTask } from './task-row.ts'

/** The questions that the run waits for people to answer, oldest first. */
export async function openQuestions(
  db: Db,
  { projectId, runId, limit }: { projectId: string; runId: string; limit: number },
): Promise<Task[]> {
  const { rows } = await db.query<TaskRow>(
    `select ${TASK_COLUMNS} from tasks
     where run_id = $1 and project_id = $2 and kind = 'escalation' and status in ('pending', 'in-progress')
     order by created_at, id limit $3`,
    [runId, projectId, limit],
  )
  return rows.map(toTask)
}
