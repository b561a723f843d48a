// Agents are stored definitions: prompt, model, tools, limits, trigger, place in the organisation. Names in a
// definition (tools, providers, seniors) are checked when it is written; runs/ executes agents.
import { changeAudited, recordAudit } from '../audit/record.ts'
import { isUniqueViolation } from '../db/failures.ts'
import { listPage, type PageQuery } from '../db/list-page.ts'
import type { Db, Pool } from '../db/pool.ts'
import { isInCode } from '../db/source-column.ts'
import { inTransaction } from '../db/transaction.ts'
import { resetMark } from '../journal/reserve.ts'
import {
  type Agent,
  type AgentDefinition,
  type AgentInput,
  type AgentPatch,
  agentDefaults,
  agentDefinition,
  definitionProblem,
} from '../kernel/agent.ts'
import { conflict, invalidRequest, notFound } from '../kernel/errors.ts'
import type { Page } from '../kernel/fields.ts'
import { isId, newId } from '../kernel/id.ts'
import type { Actor } from '../kernel/principal.ts'
import { requireDeletable, requireOpenToRequests } from '../kernel/source.ts'
import { AGENT_COLUMNS, type AgentRow, definitionColumns, toAgent } from './agent-row.ts'
import { lockHierarchy, requireNoCycle, requireSenior } from './seniors.ts'
import { holdTakeUps } from './take-up-lock.ts'

/** Returns a sentence about a name in the definition that does not exist (a provider, a tool), or null. */
export type CheckNames = (db: Db, projectId: string, definition: AgentDefinition) => Promise<string | null>

/** Called in the transaction that writes an agent: its schedules and webhooks change with the agent or not at all. */
export type AgentChanged = (tx: Db, agent: Agent, change: AgentChange) => Promise<void>

export interface AgentChange {
  before: Agent | null
  isDeleted: boolean
}

export interface AgentWrite {
  actor: Actor
  checkNames: CheckNames
  onChanged: AgentChanged
}

export async function createAgent(
  tx: Db,
  projectId: string,
  input: AgentInput,
  { actor, checkNames, onChanged }: AgentWrite,
): Promise<Agent> {
  const definition = agentDefinition.parse({ ...agentDefaults, ...input })
  await requireSound(tx, projectId, definition, checkNames)
  // Nobody reports to a new agent yet, so it cannot close a cycle; only the senior's existence is checked.
  if (definition.senior_id !== null) await requireSenior(tx, projectId, definition.senior_id)
  const id = newId()
  const { columns, values } = definitionColumns(definition)
  const places = columns.map((_, index) => `$${index + 3}`)
  const rows = await sayingNameTaken(definition.name, () =>
    changeAudited<AgentRow>(tx, {
      sql: `insert into agents (id, project_id, ${columns.join(', ')})
            values ($1, $2, ${places.join(', ')}) returning ${AGENT_COLUMNS}`,
      values: [id, projectId, ...values],
      note: note('agent.create', actor, projectId, id, { name: definition.name }),
    }),
  )
  const agent = onlyAgent(rows)
  await onChanged(tx, agent, { before: null, isDeleted: false })
  return agent
}

/** The marks (percent of the allocation) that the agents of such a list have crossed. */
export const MARKS_OF = { short: [90, 95], used_up: [100] } as const

export interface AgentsQuery extends PageQuery {
  /** Only agents whose tokens run short, or are used up. */
  tokens?: keyof typeof MARKS_OF | undefined
}

export async function listAgents(db: Db, projectId: string, { tokens, ...query }: AgentsQuery): Promise<Page<Agent>> {
  const marked = 'and id in (select agent_id from agent_tokens where mark > 0 and mark = any($2))'
  return listPage<AgentRow, Agent>(db, {
    sql: `select ${AGENT_COLUMNS} from agents where project_id = $1 and deleted_at is null ${tokens ? marked : ''}`,
    values: tokens ? [projectId, MARKS_OF[tokens]] : [projectId],
    query,
    toItem: toAgent,
  })
}

export async function getAgent(db: Db, projectId: string, agentId: string): Promise<Agent> {
  const { rows } = await db.query<AgentRow>(
    `select ${AGENT_COLUMNS} from agents where id = $1 and project_id = $2 and deleted_at is null`,
    [agentId, projectId],
  )
  return onlyAgent(rows)
}

/** Finds an agent by name or id, as agents and flows name each other; null if there is none. */
export async function findAgent(db: Db, projectId: string, nameOrId: string): Promise<Agent | null> {
  const { rows } = await db.query<AgentRow>(
    `select ${AGENT_COLUMNS} from agents
     where project_id = $1 and deleted_at is null and (name = $2 or id = $3) order by (id = $3) desc nulls last limit 1`,
    [projectId, nameOrId, isId(nameOrId) ? nameOrId : null],
  )
  return rows[0] ? toAgent(rows[0]) : null
}

/** Loads the agents of claimed runs. Deleted agents are left out, and their open runs fail. */
export async function loadAgents(db: Db, ids: readonly string[]): Promise<Map<string, Agent>> {
  const { rows } = await db.query<AgentRow>(
    `select ${AGENT_COLUMNS} from agents where id = any($1) and deleted_at is null`,
    [ids],
  )
  return new Map(rows.map((row) => [row.id, toAgent(row)]))
}

/** Absent fields keep their values; a nested object is replaced as a whole. */
export async function updateAgent(
  pool: Pool,
  projectId: string,
  agentId: string,
  patch: AgentPatch,
  write: AgentWrite,
): Promise<Agent> {
  return inTransaction(pool, async (tx) => {
    if (patch.enabled !== undefined) await holdTakeUps(tx, projectId)
    if (patch.senior_id) await lockHierarchy(tx, projectId)
    const before = await lockAgent(tx, projectId, agentId)
    await requireOpenToRequests('agent', before, Object.keys(patch), () => isInCode(tx, 'agents', agentId))
    return changeAgent(tx, before, patch, write)
  })
}

/** The caller holds the row of the agent, and the hierarchy if the patch names a senior. */
export async function changeAgent(
  tx: Db,
  before: Agent,
  patch: AgentPatch,
  { actor, checkNames, onChanged }: AgentWrite,
): Promise<Agent> {
  const { id, project_id: projectId } = before
  const changed = Object.keys(patch)
  if (changed.length === 0) return before
  const known = agentDefinition.strip().parse(before)
  const definition = agentDefinition.parse({ ...known, ...patch })
  // An agent that names something that is gone can still be switched off.
  const isSwitchedOff = changed.length === 1 && patch.enabled === false
  if (!isSwitchedOff) await requireSound(tx, projectId, definition, checkNames)
  if (patch.senior_id) await requireNoCycle(tx, projectId, id, patch.senior_id)
  const { columns, values } = definitionColumns(definition)
  const { rows } = await sayingNameTaken(definition.name, () =>
    tx.query<AgentRow>(
      `update agents set ${columns.map((column, index) => `${column} = $${index + 2}`).join(', ')},
         updated_at = muster.now() where id = $1 returning ${AGENT_COLUMNS}`,
      [id, ...values],
    ),
  )
  if (patch.token_allocation !== undefined) await resetMark(tx, id)
  await recordAudit(tx, note('agent.update', actor, projectId, id, { changed }))
  const agent = onlyAgent(rows)
  await onChanged(tx, agent, { before, isDeleted: false })
  return agent
}

/** The agent's runs keep naming it; its name is free again; its subordinates report to its senior. */
export async function deleteAgent(
  pool: Pool,
  projectId: string,
  agentId: string,
  { actor, onChanged }: Omit<AgentWrite, 'checkNames'>,
): Promise<void> {
  await inTransaction(pool, async (tx) => {
    await holdTakeUps(tx, projectId)
    await lockHierarchy(tx, projectId)
    // The lock waits for requests that are giving the agent a task or a subordinate: they hold a share of its key.
    const agent = await lockAgent(tx, projectId, agentId, 'update')
    requireDeletable('agent', agent, await isInCode(tx, 'agents', agentId))
    await tx.query('update agents set deleted_at = muster.now(), enabled = false where id = $1', [agentId])
    await tx.query('update agents set senior_id = $2 where senior_id = $1', [agentId, agent.senior_id])
    await recordAudit(tx, note('agent.delete', actor, projectId, agentId, { name: agent.name }))
    await onChanged(tx, { ...agent, enabled: false }, { before: agent, isDeleted: true })
  })
}

export async function lockAgent(
  tx: Db,
  projectId: string,
  agentId: string,
  lock: 'update' | 'no key update' = 'no key update',
): Promise<Agent> {
  const { rows } = await tx.query<AgentRow>(
    `select ${AGENT_COLUMNS} from agents where id = $1 and project_id = $2 and deleted_at is null for ${lock}`,
    [agentId, projectId],
  )
  return onlyAgent(rows)
}

async function requireSound(
  db: Db,
  projectId: string,
  definition: AgentDefinition,
  checkNames: CheckNames,
): Promise<void> {
  const problem = definitionProblem(definition) ?? (await checkNames(db, projectId, definition))
  if (problem) throw invalidRequest(problem)
}

async function sayingNameTaken<Result>(name: string, write: () => Promise<Result>): Promise<Result> {
  try {
    return await write()
  } catch (error) {
    if (isUniqueViolation(error, 'agents_name')) throw conflict(`There is an agent called ${name} already.`)
    throw error
  }
}

function note(action: string, actor: Actor, projectId: string, agentId: string, details: Record<string, unknown>) {
  return { action, actor, projectId, targetType: 'agent', targetId: agentId, details }
}

function onlyAgent(rows: AgentRow[]): Agent {
  const row = rows[0]
  if (!row) throw notFound('agent')
  return toAgent(row)
}
