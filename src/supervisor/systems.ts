// The variants of a project's supervisor system. Blue and green come with Muster; stored variants replace them.
import { changeAudited } from '../audit/record.ts'
import type { Db } from '../db/pool.ts'
import { invalidRequest, notFound } from '../kernel/errors.ts'
import { didYouMean } from '../kernel/nearest.ts'
import type { Actor } from '../kernel/principal.ts'
import type { SystemConfig } from '../kernel/supervisor.ts'

export interface System extends SystemConfig {
  variant: string
  /** Null for a variant that was never changed since it came with Muster. */
  updated_at: string | null
}

/** A variant as it is configured now, for runs that keep this configuration. */
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

/** The most variants of a project; projects rarely have more than two. */
const MOST_VARIANTS = 100

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
  requested: string | null
  /** The variant named by SYSTEM_VARIANT. */
  ofProcess: string | null
  contextId: string | null
}

/** The named variant, else that of this process, else that of the context, else one by traffic weights. */
export async function chooseSystem(
  db: Db,
  projectId: string,
  { requested, ofProcess, contextId }: Choice,
  random: () => number = Math.random,
): Promise<System> {
  const named = requested ?? ofProcess
  if (named !== null) {
    const system = await findSystem(db, projectId, named)
    if (!system) throw invalidRequest(await unknownVariant(db, projectId, named))
    return system
  }
  const systems = await listSystems(db, projectId)
  const before = contextId === null ? null : await variantOf(db, projectId, contextId)
  return systems.find(({ variant }) => variant === before) ?? byWeight(systems, random())
}

export async function unknownVariant(db: Db, projectId: string, name: string): Promise<string> {
  const names = (await listSystems(db, projectId)).map(({ variant }) => variant)
  return `There is no system variant called "${name}" in this project.${didYouMean(name, names)}`
}

async function variantOf(db: Db, projectId: string, contextId: string): Promise<string | null> {
  const { rows } = await db.query<{ variant: string }>(
    `select part->>'variant' as variant from agent_runs
     where project_id = $1 and part->'context'->>'context_id' = $2 order by created_at desc, id desc limit 1`,
    [projectId, contextId],
  )
  return rows[0]?.variant ?? null
}

/** The chance of each variant to be chosen for a request that names none. `ofProcess` is that of SYSTEM_VARIANT. */
export function requestShares(systems: readonly System[], ofProcess: string | null): Map<string, number> {
  const sum = systems.reduce((total, { traffic }) => total + traffic, 0)
  const only = ofProcess ?? (sum === 0 ? systems[0]?.variant : undefined)
  return new Map(
    systems.map(({ variant, traffic }) => [variant, only === undefined ? traffic / sum : Number(variant === only)]),
  )
}

/** If all weights are zero, the first variant is chosen. */
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
