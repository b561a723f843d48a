import type { Db } from '../../src/db/pool.ts'
import { newId } from '../../src/kernel/id.ts'

/** Makes an alert that nobody has seen, like those of the checker. Returns its id. */
export async function insertAlert(db: Db, projectId: string, flowRunId: string): Promise<string> {
  const id = newId()
  await db.query(
    `insert into flow_alerts (id, project_id, flow_run_id, kind, progress, suspected_cause, actions)
     select $1, $2, id, 'slow', progress, 'x has been under way for 9 s.', '["cancel"]' from flow_runs where id = $3`,
    [id, projectId, flowRunId],
  )
  return id
}
