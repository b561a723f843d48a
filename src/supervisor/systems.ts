// The variants of a project's supervisor system. Blue and green come with Muster; what a project stores takes their place.
import { changeAudited } from '../audit/record.ts'
import type { Db } from '../db/pool.ts'
import { invalidRequest, notFound } from '../kernel/errors.ts'
import type { Actor } from '../kernel/principal.ts'
import type { SystemConfig } from '../kernel/supervisor.ts'

export interface System extends SystemConfig {
  variant: string
  /** Null while it is as it came with Muster. */
  updated_at: string | null
}

/** A variant as it is configured now, for runs that keep it so. */
export const asConfigured = ({ variant, traffic: _, updated_at: __, ...config }: System) => ({ variant, config })

const shipped = (traffic: number): SystemConfig => ({
  supervisor: { prompt_id: 'supervisor_planner', model: null },
  specialists: [
    { name: 'research_agent', prompt_id: 'research_agent', model: null, tools: ['http_fetch'] },
    { name: 'transform_agent', prompt_id: 'transform_agent', model: null, tools: [] },
  ],
  finalizer: { prompt_id: 'finalizer_agent', model: null },
  escalation: { prompt_id: 'hitl_escalation_handler', model: null },
  traffic,
})

const SHIPPED: Readonly<Record<string, SystemConfig>> = { blue: shipped(100), green: shipped(0) }

interface SystemRow {
  variant: string
  config: Omit<SystemConfig, 'traffic'>
  traffic: number
  updated_at: Date
}

const toSystem = ({ variant, config, traffic, updated_at: at }: SystemRow): System => ({
  variant,
  ...config,
  traffic,
  updated_at: at.toISOString(),
})

/** A project has as many variants as people made, and few more than two. */
const MOST_VARIANTS = 100

/** All variants, by name. */
export async function listSystems(db: Db, projectId: string): Promise<System[]> {
  const { rows } = await db.query<SystemRow>(
    `select variant, config, traffic, updated_at from systems where project_id = $1 order by variant limit ${MOST_VARIANTS}`,
    [projectId],
  )
  const stored = rows.map(toSystem)
  const names = new Set(stored.map(({ variant }) => variant))
  const untouched = Object.entries(SHIPPED).flatMap(([variant, config]) =>
    names.has(variant) ? [] : [{ variant, ...config, updated_at: null }],
  )
  return [...stored, ...untouched].toSorted((a, b) => (a.variant < b.variant ? -1 : 1))
}

export async function findSystem(db: Db, projectId: string, variant: string): Promise<System | null> {
  const { rows } = await db.query<SystemRow>(
    'select variant, config, traffic, updated_at from systems where project_id = $1 and variant = $2',
    [projectId, variant],
  )
  if (rows[0]) return toSystem(rows[0])
  const config = Object.hasOwn(SHIPPED, variant) ? SHIPPED[variant] : undefined
  return config ? { variant, ...config, updated_at: null } : null
}

export async function getSystem(db: Db, projectId: string, variant: string): Promise<System> {
  const system = await findSystem(db, projectId, variant)
  if (!system) throw notFound('system variant')
  return system
}

/** The caller has checked that the tools and providers exist. */
export async function putSystem(
  db: Db,
  projectId: string,
  variant: string,
  { traffic, ...config }: SystemConfig,
  actor: Actor,
): Promise<System> {
  const rows = await changeAudited<SystemRow>(db, {
    sql: `insert into systems (project_id, variant, config, traffic)
          select $1::uuid, $2, $3::jsonb, $4
          where (select count(*) from systems where project_id = $1 and variant <> $2) < ${MOST_VARIANTS}
          on conflict (project_id, variant) do update
            set config = excluded.config, traffic = excluded.traffic, updated_at = muster.now()
          returning variant, config, traffic, updated_at`,
    values: [projectId, variant, JSON.stringify(config), traffic],
    note: { action: 'system.update', actor, projectId, targetType: 'system', targetId: variant, details: { traffic } },
  })
  const [row] = rows
  if (!row) throw invalidRequest(`A project has ${MOST_VARIANTS} system variants at most.`)
  return toSystem(row)
}

export interface Choice {
  /** The variant that the request names. */
  requested: string | null
  /** SYSTEM_VARIANT. */
  ofProcess: string | null
  contextId: string | null
}

/**
 * The variant of a request: the one that it names, else that of this process, else the one that the context had before,
 * else one by the weights of their traffic.
 */
export async function chooseSystem(
  db: Db,
  projectId: string,
  { requested, ofProcess, contextId }: Choice,
  random: () => number = Math.random,
): Promise<System> {
  const named = requested ?? ofProcess
  if (named !== null) {
    const system = await findSystem(db, projectId, named)
    if (!system) throw invalidRequest(`There is no system variant called "${named}" in this project.`)
    return system
  }
  const systems = await listSystems(db, projectId)
  const before = contextId === null ? null : await variantOf(db, projectId, contextId)
  return systems.find(({ variant }) => variant === before) ?? byWeight(systems, random())
}

async function variantOf(db: Db, projectId: string, contextId: string): Promise<string | null> {
  const { rows } = await db.query<{ variant: string }>(
    `select part->>'variant' as variant from agent_runs
     where project_id = $1 and part->'context'->>'context_id' = $2 order by created_at desc, id desc limit 1`,
    [projectId, contextId],
  )
  return rows[0]?.variant ?? null
}

/** Without any weight it is the first one. */
export function byWeight(systems: readonly System[], at: number): System {
  let left = at * systems.reduce((sum, { traffic }) => sum + traffic, 0)
  for (const system of systems) {
    left -= system.traffic
    if (left < 0) return system
  }
  const [first] = systems
  if (!first) throw new Error('a project has no system variants')
  return first
}
