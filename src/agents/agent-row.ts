import { type RowOf, tellInstants } from '../db/instants.ts'
import { SOURCE_COLUMN } from '../db/source-column.ts'
import { type Agent, type AgentDefinition, agentDefinition, DEFAULT_ITERATIONS } from '../kernel/agent.ts'

const DEFINED = Object.keys(agentDefinition.shape) as (keyof AgentDefinition)[] // Object.keys returns string[]

export const AGENT_COLUMNS = `id, project_id, ${SOURCE_COLUMN}, ${DEFINED.join(', ')}, status, paused_for,
  created_at, updated_at,
  (select last_active_at from agent_tokens where agent_id = agents.id) as last_active_at,
  (select last_worked_at from agent_tokens where agent_id = agents.id) as last_worked_at,
  (select at from org_rounds where at >= agents.created_at) as last_polled_at,
  coalesce((select used from agent_tokens where agent_id = agents.id), 0) as token_used`

/** The columns a definition is stored in, with the values for them in the same order. */
export function definitionColumns(definition: AgentDefinition): { columns: string[]; values: unknown[] } {
  return { columns: [...DEFINED], values: DEFINED.map((field) => toColumn(field, definition[field])) }
}

export type AgentRow = RowOf<Agent>

export function toAgent(row: AgentRow): Agent {
  return {
    ...tellInstants(row),
    // The default is written out, so that a reader sees after how many rounds a loop agent ends.
    max_iterations: row.max_iterations ?? (row.flow_type === 'loop' ? DEFAULT_ITERATIONS : null),
  }
}

/** Lists of texts are arrays in PostgreSQL; every other structure is JSON. */
function toColumn(field: keyof AgentDefinition, value: unknown): unknown {
  const isTextList = field === 'tools' || field === 'competencies' || field === 'require_approval'
  return isTextList || value === null || typeof value !== 'object' ? value : JSON.stringify(value)
}
