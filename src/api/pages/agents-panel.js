import { agentBadges } from './agent-badges.js'
import { agentButtons } from './agent-buttons.js'
import { agentDetail } from './agent-detail.js'
import { agentForm } from './agent-form.js'
import { get } from './api.js'
import { el } from './dom.js'
import { pagedList } from './list.js'
import { loaded } from './loaded.js'
import { projectAddress } from './projects.js'

/** All agents of the project, or one of them, or the form that makes or changes one. */
export function agentsPanel(context) {
  const { project, isAdmin, parts } = context
  const [id, action] = parts
  if (id === undefined) return agentList(context)
  if (id === 'new' && isAdmin) return agentForm({ project, agent: null })
  const path = `/api/projects/${project.id}/agents/${id}`
  return loaded(
    () => get(path),
    (agent, reload) =>
      action === 'edit' && isAdmin ? agentForm({ project, agent }) : agentDetail({ ...context, agent, reload }),
    { lines: 6 },
  )
}

function agentList({ project, isAdmin }) {
  const problem = el('div')
  const address = (...rest) => projectAddress(project.id, 'agents', ...rest)
  const list = pagedList({
    label: 'Agents',
    path: `/api/projects/${project.id}/agents`,
    empty: isAdmin ? 'No agent yet. Make the first one with “New agent”.' : 'No agent yet.',
    row: (agent) =>
      el(
        'li',
        { class: 'agent' },
        el(
          'span',
          { class: 'who' },
          el('a', { class: 'name', href: address(agent.id) }, agent.name),
          agent.role ? el('span', { class: 'dim' }, agent.role) : null,
        ),
        agentBadges(agent),
        isAdmin ? agentButtons({ project, agent, problem, onChange: changed }) : null,
      ),
  })
  const changed = async () => {
    await list.reload()
    list.focus()
  }
  return el(
    'div',
    { class: 'panel' },
    isAdmin
      ? el('div', { class: 'buttons' }, el('a', { class: 'button primary', href: address('new') }, 'New agent'))
      : null,
    problem,
    list.element,
  )
}
