// Projects are the tenants: every row below belongs to one. This folder knows people, projects, members and keys, and
// tells the rest of the system the identity and the rights of a caller.

import { changeAudited } from '../audit/record.ts'
import { type RowOf, tellInstants } from '../db/instants.ts'
import { listPage, type PageQuery } from '../db/list-page.ts'
import type { Db } from '../db/pool.ts'
import { HALT_CHANNEL } from '../journal/wake.ts'
import { notFound } from '../kernel/errors.ts'
import type { Page } from '../kernel/fields.ts'
import { newId } from '../kernel/id.ts'
import { type Actor, isInstanceAdmin, type Principal } from '../kernel/principal.ts'
import type { Project, SettingsPatch } from '../kernel/project.ts'

type ProjectRow = RowOf<Project>

const COLUMNS = 'id, name, halted_at, created_at, updated_at'

export async function createProject(
  db: Db,
  input: { name: string; settings?: SettingsPatch },
  actor: Actor,
): Promise<Project> {
  const id = newId()
  const rows = await changeAudited<ProjectRow>(db, {
    sql: `insert into projects (id, name, settings) values ($1, $2, $3) returning ${COLUMNS}`,
    values: [id, input.name, JSON.stringify(input.settings ?? {})],
    note: note('project.create', actor, id, { name: input.name }),
  })
  return onlyProject(rows)
}

export async function listProjects(db: Db, principal: Principal, query: PageQuery): Promise<Page<Project>> {
  const scope = scopeOf(principal)
  return listPage<ProjectRow, Project>(db, {
    sql: `select ${COLUMNS} from projects where deleted_at is null ${scope.and}`,
    values: scope.values,
    query,
    toItem: toProject,
  })
}

/** An instance admin with more projects follows the newest ones. */
const MOST_FOLLOWED = 10_000

/** All projects that the principal can see, without a page's end. */
export async function projectsSeenBy(db: Db, principal: Principal): Promise<{ id: string; created_at: Date }[]> {
  const { and, values } = scopeOf(principal)
  const { rows } = await db.query<{ id: string; created_at: Date }>(
    `select id, created_at from projects where deleted_at is null ${and}
     order by created_at desc, id desc limit ${MOST_FOLLOWED}`,
    values,
  )
  return rows
}

export async function getProject(db: Db, projectId: string): Promise<Project> {
  const { rows } = await db.query<ProjectRow>(`select ${COLUMNS} from projects where id = $1 and deleted_at is null`, [
    projectId,
  ])
  return onlyProject(rows)
}

export async function projectExists(db: Db, projectId: string): Promise<boolean> {
  const { rowCount } = await db.query('select from projects where id = $1 and deleted_at is null', [projectId])
  return rowCount === 1
}

/** The project, which is not deleted until the transaction ends; null if it is gone. */
export async function holdProject(tx: Db, projectId: string): Promise<Project | null> {
  const { rows } = await tx.query<ProjectRow>(
    `select ${COLUMNS} from projects where id = $1 and deleted_at is null for share`,
    [projectId],
  )
  return rows[0] ? toProject(rows[0]) : null
}

/** The oldest project, held likewise. */
export async function holdOldestProject(tx: Db): Promise<Project | null> {
  const { rows } = await tx.query<ProjectRow>(
    `select ${COLUMNS} from projects where deleted_at is null order by created_at, id limit 1 for share`,
  )
  return rows[0] ? toProject(rows[0]) : null
}

export async function updateProject(
  db: Db,
  projectId: string,
  patch: { name?: string | undefined },
  actor: Actor,
): Promise<Project> {
  const name = patch.name
  if (name === undefined) return getProject(db, projectId)
  const rows = await changeAudited<ProjectRow>(db, {
    sql: `update projects set name = $2, updated_at = muster.now()
          where id = $1 and deleted_at is null returning ${COLUMNS}`,
    values: [projectId, name],
    note: note('project.update', actor, projectId, { name }),
  })
  return onlyProject(rows)
}

/** From the commit on nobody sees the project, and it is halted for good. Its rows are deleted in the background. */
export async function deleteProject(db: Db, projectId: string, actor: Actor): Promise<void> {
  const { name } = await getProject(db, projectId)
  const rows = await changeAudited<ProjectRow>(db, {
    sql: `update projects set deleted_at = muster.now(), halted_at = coalesce(halted_at, muster.now()),
            updated_at = muster.now()
          where id = $1 and deleted_at is null returning ${COLUMNS}, pg_notify('${HALT_CHANNEL}', '')`,
    values: [projectId],
    note: note('project.delete', actor, projectId, { name }),
  })
  onlyProject(rows)
}

/**
 * The off switch, which every guard reads. The time of the release is kept, because schedules do not make up for runs
 * that they missed before it.
 */
export async function setHalted(db: Db, projectId: string, halted: boolean, actor: Actor): Promise<Project> {
  await changeAudited<ProjectRow>(db, {
    sql: `update projects set updated_at = muster.now(),
            ${halted ? 'halted_at = muster.now()' : 'halted_at = null, unhalted_at = muster.now()'}
          where id = $1 and deleted_at is null and halted_at is ${halted ? '' : 'not'} null returning ${COLUMNS}`,
    values: [projectId],
    note: note(halted ? 'project.halt' : 'project.unhalt', actor, projectId),
  })
  return getProject(db, projectId)
}

function scopeOf(principal: Principal): { and: string; values: string[] } {
  if (isInstanceAdmin(principal)) return { and: '', values: [] }
  if (principal.type === 'key') return { and: 'and id = $1', values: [principal.projectId] }
  return {
    and: 'and id in (select project_id from members where user_id = $1)',
    values: [principal.id ?? ''],
  }
}

function note(action: string, actor: Actor, projectId: string, details: Record<string, unknown> = {}) {
  return { action, actor, projectId, targetType: 'project', targetId: projectId, details }
}

function onlyProject(rows: ProjectRow[]): Project {
  const row = rows[0]
  if (!row) throw notFound('project')
  return toProject(row)
}

const toProject = (row: ProjectRow): Project => tellInstants(row)
