import { type Agent, type AgentDefinition, agentDefinition, DEFAULT_ITERATIONS } from '../kernel/agent.ts'

const DEFINED = Object.keys(agentDefinition.shape) as (keyof AgentDefinition)[] // keys forgets its literals

export const AGENT_COLUMNS = `id, project_id, ${DEFINED.join(', ')}, status, paused_for, created_at, updated_at,
  (select last_active_at from agent_tokens where agent_id = agents.id) as last_active_at,
  (select last_worked_at from agent_tokens where agent_id = agents.id) as last_worked_at,
  (select at from org_rounds where at >= agents.created_at) as last_polled_at,
  coalesce((select used from agent_tokens where agent_id = agents.id), 0) as token_used`

/** The columns a definition is stored in, with the values for them in the same order. */
export function definitionColumns(definition: AgentDefinition): { columns: string[]; values: unknown[] } {
  return { columns: [...DEFINED], values: DEFINED.map((field) => toColumn(field, definition[field])) }
}

type Instants = 'last_active_at' | 'last_worked_at' | 'last_polled_at' | 'created_at' | 'updated_at'
export type AgentRow = Omit<Agent, Instants> & { [Field in Instants]: Date | null }

export function toAgent(row: AgentRow): Agent {
  const instant = (at: Date | null): string | null => at?.toISOString() ?? null
  return {
    ...row,
    // The default is shown: whoever reads a loop agent sees when it will end.
    max_iterations: row.max_iterations ?? (row.flow_type === 'loop' ? DEFAULT_ITERATIONS : null),
    last_active_at: instant(row.last_active_at),
    last_worked_at: instant(row.last_worked_at),
    last_polled_at: instant(row.last_polled_at),
    created_at: instant(row.created_at) ?? '',
    updated_at: instant(row.updated_at) ?? '',
  }
}

/** Lists of texts are arrays in PostgreSQL; every other structure is JSON. */
function toColumn(field: keyof AgentDefinition, value: unknown): unknown {
  const isTextList = field === 'tools' || field === 'competencies'
  return isTextList || value === null || typeof value !== 'object' ? value : JSON.stringify(value)
}
