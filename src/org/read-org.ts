import { listPage, type PageQuery } from '../db/list-page.ts'
import type { Db } from '../db/pool.ts'
import type { Page } from '../kernel/fields.ts'
import type { AgentHealth, OrgAgent } from '../kernel/org.ts'

interface OrgRow extends Omit<OrgAgent, 'subordinates'> {
  senior_id: string | null
}

/** The tree of the project's agents, by name; agents without a senior are at the top. */
export async function readOrg(db: Db, projectId: string): Promise<OrgAgent[]> {
  const { rows } = await db.query<OrgRow>(
    `select a.id, a.name, a.role, a.status, a.paused_for, a.competencies, a.senior_id, a.token_allocation, coalesce(t.used, 0) as token_used,
       coalesce(l.load, 0) as load
     from agents a left join agent_tokens t on t.agent_id = a.id
     left join (
       select assigned_to, count(*)::int as load from tasks
       where project_id = $1 and assigned_to is not null and status in ('pending', 'in-progress', 'blocked')
       group by assigned_to
     ) l on l.assigned_to = a.id
     where a.project_id = $1 and a.deleted_at is null order by a.name`,
    [projectId],
  )
  const nodes = new Map(rows.map(({ senior_id: _, ...row }) => [row.id, { ...row, subordinates: [] as OrgAgent[] }]))
  const top: OrgAgent[] = []
  for (const { id, senior_id: seniorId } of rows) {
    const node = nodes.get(id)
    if (node) (nodes.get(seniorId ?? '')?.subordinates ?? top).push(node)
  }
  return top
}

interface HealthRow {
  id: string
  enabled: boolean
  status: string
  polled_at: Date | null
}

export async function readHealth(db: Db, projectId: string, query: PageQuery): Promise<Page<AgentHealth>> {
  return listPage<HealthRow, AgentHealth>(db, {
    sql: `select id, created_at, enabled, status, (select at from org_rounds) as polled_at
          from agents where project_id = $1 and deleted_at is null`,
    values: [projectId],
    query,
    toItem: ({ id, enabled, status, polled_at: at }) => ({
      agent_id: id,
      running: enabled && status !== 'paused',
      heartbeat_at: at?.toISOString() ?? null,
    }),
  })
}
