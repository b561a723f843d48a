// The tasks that wait for people, over many projects: suggestions, escalations, and work that no agent is assigned to.
import { tellInstants } from '../db/instants.ts'
import { byId, findNewestOfEach, inEachProject, type NewestOfEach } from '../db/newest-of-each.ts'
import type { Db } from '../db/pool.ts'
import type { TaskOfHome } from '../kernel/home.ts'

const pending = (kind: TaskOfHome['kind'], more = ''): string =>
  `select id, created_at as at from tasks where project_id = p.id and kind = '${kind}' and status = 'pending' ${more}`

const WAITING = inEachProject(pending('suggestion'), pending('escalation'), pending('work', 'and assigned_to is null'))

export const findWaitingTasks = (db: Db, projects: readonly string[], limit: number): Promise<NewestOfEach> =>
  findNewestOfEach(db, WAITING, { projects, limit })

export async function readWaitingTasks(db: Db, ids: readonly string[]): Promise<ReadonlyMap<string, TaskOfHome>> {
  const { rows } = await db.query<Omit<TaskOfHome, 'created_at'> & { created_at: Date }>(
    'select id, kind, title, created_at from tasks where id = any($1::uuid[])',
    [ids],
  )
  return byId(rows.map((row) => tellInstants(row)))
}
