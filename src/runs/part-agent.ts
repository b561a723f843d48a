import { type Agent, agentDefaults } from '../kernel/agent.ts'
import { idFrom } from '../kernel/id.ts'
import { isSpecialist, type SystemPart } from '../kernel/supervisor.ts'

/** A part of a supervisor system as an agent. The supervisor has no tools, and reads its prompts for each question. */
export function agentOfPart(part: SystemPart, projectId: string): Agent {
  const own = isSpecialist(part)
    ? { prompt_id: part.config.prompt_id, model: part.config.model, tools: part.config.tools }
    : { model: part.config.supervisor.model }
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

const BEGINNING = new Date(0).toISOString()
