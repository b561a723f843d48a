import type { Db, PreparedSql } from '../db/pool.ts'

const MOST_AT_ONCE = 500

const ANSWERED: PreparedSql = {
  name: 'runs_answered',
  text: `select distinct r.id from tasks t join agent_runs r on r.id = t.run_id
     where t.kind = 'escalation' and t.run_id is not null and t.completed_at > muster.now() - interval '1 hour'
       and r.waits_for = 'human' and r.owner is null and r.ready_at is null
       and not exists (select from tasks o where o.run_id = t.run_id and (o.kind = 'escalation' or o.call is not null)
         and o.status in ('pending', 'in-progress'))
     limit ${MOST_AT_ONCE}`,
}

/** Runs that wait although all their questions were answered within the last hour. There should be none. */
export async function findAnsweredRuns(db: Db): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>(ANSWERED)
  return rows.map((row) => row.id)
}
