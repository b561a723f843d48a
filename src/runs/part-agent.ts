import { type Agent, agentDefaults } from '../kernel/agent.ts'
import { defined } from '../kernel/defined.ts'
import { idFrom } from '../kernel/id.ts'
import { isSpecialist, type SpecialistPart, type SystemPart } from '../kernel/supervisor.ts'

/** A part of a supervisor system as an agent. The supervisor has no tools, and reads its prompts for each question. */
export function agentOfPart(part: SystemPart, projectId: string): Agent {
  const own = isSpecialist(part) ? ofSpecialist(part.config) : { model: part.config.supervisor.model }
  return {
    ...agentDefaults,
    name: part.node,
    ...own,
    id: idFrom(`part ${projectId} ${part.variant} ${part.node}`),
    project_id: projectId,
    source: 'api',
    token_used: 0,
    status: 'active',
    paused_for: null,
    last_active_at: null,
    last_worked_at: null,
    last_polled_at: null,
    created_at: BEGINNING,
    updated_at: BEGINNING,
  }
}

function ofSpecialist({ prompt_id, model, tools, ...rights }: SpecialistPart['config']): Partial<Agent> {
  const { execution_mode, capabilities, require_approval } = rights
  return { prompt_id, model, tools, ...defined({ execution_mode, capabilities, require_approval }) }
}

const BEGINNING = new Date(0).toISOString()
