import type { Db } from '../../src/db/pool.ts'
import { newId } from '../../src/kernel/id.ts'

/** An alert that nobody has seen, as the checker would have made it. Answers its id. */
export async function insertAlert(db: Db, projectId: string, flowRunId: string): Promise<string> {
  const id = newId()
  await db.query(
    `insert into flow_alerts (id, project_id, flow_run_id, kind, progress, suspected_cause, actions)
     select $1, $2, id, 'slow', progress, 'x has been under way for 9 s.', '["cancel"]' from flow_runs where id = $3`,
    [id, projectId, flowRunId],
  )
  return id
}
