// A desk is a task with the subordinates that its agent could give it to. They are read once for all tasks of a senior
// that are decided together.
import { anyOf, listAt } from '../db/lists.ts'
import type { Db, PreparedSql } from '../db/pool.ts'
import { isAvailable } from '../kernel/agent-status.ts'
import { type Candidate, createMatcher, type Matcher } from './competency.ts'
import { lockTasks, WORK_COLUMNS, type WorkTask } from './work-row.ts'

export interface Desk {
  task: WorkTask
  /** The direct subordinates that may be given work, by name. */
  subordinates: Subordinate[]
  matcher: Matcher<Subordinate>
}

export interface Subordinate extends Candidate {
  role: string
}

interface SubordinateRow {
  id: string
  senior_id: string
  name: string
  role: string
  competencies: string[]
  enabled: boolean
  status: 'active' | 'bored' | 'stuck' | 'paused'
  token_allocation: number | null
  token_used: number
  load: number
}

/** At most this many subordinates of a senior are considered, because all their competencies are read and compared. */
const MOST_SUBORDINATES = 300
/** Open tasks of an agent are counted up to this number; beyond it the agent counts as fully busy. */
const MOST_COUNTED = 100

const READ: PreparedSql = { name: 'desks_read', text: `select ${WORK_COLUMNS} from tasks where id = ${anyOf(1)}` }

const SUBORDINATES: PreparedSql = {
  name: 'desk_subordinates',
  text: `
    select s.* from unnest(${listAt(1)}) as senior (id) cross join lateral (
      select a.id, a.senior_id, a.name, a.role, a.competencies, a.enabled, a.status, a.token_allocation,
        coalesce(k.used, 0) as token_used,
        (select count(*) from (
          select from tasks o where o.assigned_to = a.id and o.status in ('pending', 'in-progress') limit ${MOST_COUNTED}
        ) open)::int as load
      from agents a left join agent_tokens k on k.agent_id = a.id
      where a.senior_id = senior.id and a.deleted_at is null and a.enabled and a.status in ('active', 'bored')
      order by a.name limit ${MOST_SUBORDINATES}
    ) s`,
}

export interface AskedDesk {
  taskId: string
  /** False if nobody reports to the task's agent; then no subordinates are read. */
  isSenior: boolean
}

/** Returns desks in the order of the requests; null for a task that does not exist. */
export async function readDesks(db: Db, asked: readonly AskedDesk[]): Promise<(Desk | null)[]> {
  const { rows } = await db.query<WorkTask>(READ, [asked.map(({ taskId }) => taskId)])
  const ofSeniors = new Set(asked.filter(({ isSenior }) => isSenior).map(({ taskId }) => taskId))
  const desks = await withSubordinates(db, rows, (task) => ofSeniors.has(task.id))
  return asked.map(({ taskId }) => desks.get(taskId) ?? null)
}

export async function lockDesks(tx: Db, taskIds: readonly string[]): Promise<Map<string, Desk>> {
  return withSubordinates(tx, [...(await lockTasks(tx, taskIds)).values()])
}

async function withSubordinates(
  db: Db,
  tasks: readonly WorkTask[],
  isSenior: (task: WorkTask) => boolean = () => true,
): Promise<Map<string, Desk>> {
  const seniors = [...new Set(tasks.filter(isSenior).flatMap((task) => task.assigned_to ?? []))]
  const { rows } = seniors.length === 0 ? { rows: [] } : await db.query<SubordinateRow>(SUBORDINATES, [seniors])
  const bySenior = Map.groupBy(rows, (row) => row.senior_id)
  const teams = new Map(seniors.map((id) => [id, teamOf(bySenior.get(id) ?? [])]))
  const nobody = teamOf([])
  return new Map(tasks.map((task) => [task.id, { task, ...(teams.get(task.assigned_to ?? '') ?? nobody) }]))
}

function teamOf(rows: readonly SubordinateRow[]): Pick<Desk, 'subordinates' | 'matcher'> {
  const subordinates = rows
    .filter(isAvailable)
    .map(({ id, name, role, competencies, load, token_allocation: allocation, token_used: used }) => ({
      id,
      name,
      role,
      competencies,
      load,
      tokensLeft: allocation === null ? null : allocation - used,
    }))
  return { subordinates, matcher: createMatcher(subordinates) }
}
