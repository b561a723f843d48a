import { el } from './dom.js'
import { statusBadge } from './status.js'

/**
 * What one wants to know of an agent before its details: whether something keeps it from its tasks, what starts it, what it
 * may do by itself, whether it is on.
 */
export const agentBadges = (agent) => [
  agent.status === 'active' ? null : statusBadge(agent.status),
  el('span', { class: 'badge', title: 'What starts it' }, agent.trigger_type),
  el('span', { class: 'badge', title: 'What it does with changes' }, agent.execution_mode),
  statusBadge(agent.enabled ? 'enabled' : 'disabled'),
]
