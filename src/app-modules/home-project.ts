// The project in which the agents and flows of an app module live. At the first use of a name the id of the project of
// this name is remembered. From then on the name means that very project: a rename does not move the agents and flows,
// and a project that is given the same name later gets none.
import type { Db } from '../db/pool.ts'
import { afterCommit } from '../db/transaction.ts'
import { createProject, holdOldestProject, holdProject } from '../identity/projects.ts'
import type { Log } from '../kernel/log.ts'
import { systemActor } from '../kernel/principal.ts'
import type { Project } from '../kernel/project.ts'
import type { LoadedApp } from './load-app.ts'

type Homed = Pick<LoadedApp, 'path' | 'project' | 'agents' | 'flows'>

/** Null if there is no project: a module without agents and flows needs none, and one without a name cannot make one. */
export async function findHome(tx: Db, app: Homed, log: Log): Promise<Project | null> {
  return app.project === null ? findOldest(tx, app, log) : findNamed(tx, app, app.project, log)
}

const isEmpty = ({ agents, flows }: Homed): boolean => agents.length + flows.length === 0

async function findOldest(tx: Db, app: Homed, log: Log): Promise<Project | null> {
  const project = await holdOldestProject(tx)
  if (project || isEmpty(app)) return project
  const sentence = `${app.path}: there is no project for its agents and flows yet; they are made at the next start. Name one: project: "…".`
  afterCommit(tx, () => log.warn({}, sentence))
  return null
}

async function findNamed(tx: Db, app: Homed, name: string, log: Log): Promise<Project | null> {
  const tell = (level: 'info' | 'warn', project: Project, sentence: string): void =>
    afterCommit(tx, () => log[level]({ project_id: project.id }, `${app.path}: ${sentence}`))
  const known = await recall(tx, name)
  const kept = known?.project_id ? await holdProject(tx, known.project_id) : null
  if (kept) {
    if (kept.name !== name) tell('info', kept, `its project "${name}" is called "${kept.name}" now`)
    return kept
  }
  if (isEmpty(app)) return null
  const found = known ? null : await findByName(tx, name)
  const project = found?.project ?? (await createProject(tx, { name }, systemActor))
  await remember(tx, name, project.id)
  const live = `its agents and flows live in the project ${project.id} from now on`
  if (!found) tell('info', project, `the project "${name}" was ${known ? 'removed, and is made anew' : 'made'}`)
  else if (found.count === 1) tell('info', project, `the project "${name}" was there already; ${live}`)
  else tell('warn', project, `there are ${found.count} projects called "${name}"; ${live}`)
  return project
}

/** Null if no module has used the name; without an id if its project was removed. */
async function recall(tx: Db, name: string): Promise<{ project_id: string | null } | null> {
  const { rows } = await tx.query<{ project_id: string | null }>(
    'select project_id from app_projects where name = $1',
    [name],
  )
  return rows[0] ?? null
}

async function remember(tx: Db, name: string, projectId: string): Promise<void> {
  await tx.query(
    'insert into app_projects (name, project_id) values ($1, $2) on conflict (name) do update set project_id = $2',
    [name, projectId],
  )
}

/** Of several projects of this name the one in which a module lives already, which was renamed; else the oldest. */
async function findByName(tx: Db, name: string): Promise<{ project: Project; count: number } | null> {
  const { rows } = await tx.query<{ id: string; count: number }>(
    `select p.id, count(*) over ()::int as count from projects p where p.name = $1 and p.deleted_at is null
     order by exists (select from app_projects a where a.project_id = p.id) desc, p.created_at, p.id limit 1`,
    [name],
  )
  const project = rows[0] ? await holdProject(tx, rows[0].id) : null
  return rows[0] && project ? { project, count: rows[0].count } : null
}
