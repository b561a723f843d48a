// Agents are stored definitions: prompt, model, tools, limits, trigger, place in the organisation. What they name is
// checked when they are written; what they do is the business of runs/.
import { changeAudited, recordAudit } from '../audit/record.ts'
import { isUniqueViolation } from '../db/failures.ts'
import { listPage, type PageQuery } from '../db/list-page.ts'
import type { Db, Pool } from '../db/pool.ts'
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
import { AGENT_COLUMNS, type AgentRow, definitionColumns, toAgent } from './agent-row.ts'
import { lockHierarchy, requireNoCycle, requireSenior } from './seniors.ts'

/** Says what a definition names that does not exist (a provider, a tool), or null. Given by those who know. */
export type CheckNames = (db: Db, projectId: string, definition: AgentDefinition) => Promise<string | null>

/** Called in the transaction that writes an agent: what follows from its trigger changes with it or not at all. */
export type AgentChanged = (tx: Db, agent: Agent, change: AgentChange) => Promise<void>

/** The agent before the write; null if it is new. */
export interface AgentChange {
  before: Agent | null
  isDeleted: boolean
}

export interface AgentWrite {
  actor: Actor
  checkNames: CheckNames
  onChanged: AgentChanged
}

/** Within the caller's transaction. */
export async function createAgent(
  tx: Db,
  projectId: string,
  input: AgentInput,
  { actor, checkNames, onChanged }: AgentWrite,
): Promise<Agent> {
  const definition = agentDefinition.parse({ ...agentDefaults, ...input })
  await requireSound(tx, projectId, definition, checkNames)
  // Nobody reports to it yet, so it cannot close a cycle; its senior must only be there.
  if (definition.senior_id !== null) await requireSenior(tx, projectId, definition.senior_id)
  const id = newId()
  const { columns, values } = definitionColumns(definition)
  const places = columns.map((_, index) => `$${index + 3}`)
  const rows = await sayingNameTaken(definition.name, () =>
    changeAudited<AgentRow>(tx, {
      sql: `insert into agents (id, project_id, ${columns.join(', ')}) values ($1, $2, ${places.join(', ')})
            returning ${AGENT_COLUMNS}`,
      values: [id, projectId, ...values],
      note: note('agent.create', actor, projectId, id, { name: definition.name }),
    }),
  )
  const agent = onlyAgent(rows)
  await onChanged(tx, agent, { before: null, isDeleted: false })
  return agent
}

export async function listAgents(db: Db, projectId: string, query: PageQuery): Promise<Page<Agent>> {
  return listPage<AgentRow, Agent>(db, {
    sql: `select ${AGENT_COLUMNS} from agents where project_id = $1 and deleted_at is null`,
    values: [projectId],
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

/** By name or id, as agents and flows name each other; null where there is none. */
export async function findAgent(db: Db, projectId: string, nameOrId: string): Promise<Agent | null> {
  const { rows } = await db.query<AgentRow>(
    `select ${AGENT_COLUMNS} from agents
     where project_id = $1 and deleted_at is null and (name = $2 or id = $3) order by (id = $3) desc nulls last limit 1`,
    [projectId, nameOrId, isId(nameOrId) ? nameOrId : null],
  )
  return rows[0] ? toAgent(rows[0]) : null
}

/** For runs that were claimed together. Deleted ones too: what they began is still theirs to fail. */
export async function loadAgents(db: Db, ids: readonly string[]): Promise<Map<string, Agent>> {
  const { rows } = await db.query<AgentRow>(
    `select ${AGENT_COLUMNS} from agents where id = any($1) and deleted_at is null`,
    [ids],
  )
  return new Map(rows.map((row) => [row.id, toAgent(row)]))
}

/** Fields that are absent stay; a nested object is replaced whole. */
export async function updateAgent(
  pool: Pool,
  projectId: string,
  agentId: string,
  patch: AgentPatch,
  { actor, checkNames, onChanged }: AgentWrite,
): Promise<Agent> {
  return inTransaction(pool, async (tx) => {
    if (patch.senior_id) await lockHierarchy(tx, projectId)
    const before = await lockAgent(tx, projectId, agentId)
    const changed = Object.keys(patch)
    if (changed.length === 0) return before
    const known = agentDefinition.strip().parse(before)
    const definition = agentDefinition.parse({ ...known, ...patch })
    await requireSound(tx, projectId, definition, checkNames)
    if (patch.senior_id) await requireNoCycle(tx, projectId, agentId, patch.senior_id)
    const { columns, values } = definitionColumns(definition)
    const { rows } = await sayingNameTaken(definition.name, () =>
      tx.query<AgentRow>(
        `update agents set ${columns.map((column, index) => `${column} = $${index + 2}`).join(', ')},
           updated_at = muster.now() where id = $1 returning ${AGENT_COLUMNS}`,
        [agentId, ...values],
      ),
    )
    if (patch.token_allocation !== undefined) await resetMark(tx, agentId)
    await recordAudit(tx, note('agent.update', actor, projectId, agentId, { changed }))
    const agent = onlyAgent(rows)
    await onChanged(tx, agent, { before, isDeleted: false })
    return agent
  })
}

/**
 * Its runs stay, and stay attributed to it; its name is free again; its subordinates go to its senior. Whoever follows
 * changes sees it disabled.
 */
export async function deleteAgent(
  pool: Pool,
  projectId: string,
  agentId: string,
  { actor, onChanged }: Omit<AgentWrite, 'checkNames'>,
): Promise<void> {
  await inTransaction(pool, async (tx) => {
    await lockHierarchy(tx, projectId)
    // A request that gives the agent a task or a subordinate holds its key meanwhile.
    const agent = await lockAgent(tx, projectId, agentId, 'update')
    await tx.query('update agents set deleted_at = muster.now(), enabled = false where id = $1', [agentId])
    await tx.query('update agents set senior_id = $2 where senior_id = $1', [agentId, agent.senior_id])
    await recordAudit(tx, note('agent.delete', actor, projectId, agentId, { name: agent.name }))
    await onChanged(tx, { ...agent, enabled: false }, { before: agent, isDeleted: true })
  })
}

async function lockAgent(
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
