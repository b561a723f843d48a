import { agentBadges } from './agent-badges.js'
import { agentButtons } from './agent-buttons.js'
import { agentRuns } from './agent-runs.js'
import { get } from './api.js'
import { el, showInstant } from './dom.js'
import { hooksSection } from './hooks-section.js'
import { processingLog } from './processing-log.js'
import { projectAddress } from './projects.js'

const seconds = new Intl.NumberFormat(undefined, { style: 'unit', unit: 'second', unitDisplay: 'long' })
const whole = new Intl.NumberFormat()

/** One agent: what it is, what starts it, what it did. */
export function agentDetail({ project, agent, isAdmin, isMember, reload }) {
  const problem = el('div')
  const list = projectAddress(project.id, 'agents')
  const goBack = () => {
    location.hash = list
  }
  return [
    el('p', { class: 'crumbs' }, el('a', { href: list }, '← Agents')),
    el(
      'div',
      { class: 'title' },
      el('h2', { class: 'heading' }, agent.name),
      agentBadges(agent),
      isAdmin ? agentButtons({ project, agent, problem, onChange: reload, onDelete: goBack }) : null,
    ),
    problem,
    definition(project, agent),
    agent.trigger_type === 'webhook' ? hooksSection({ project, agent, isAdmin }) : null,
    agent.trigger_type === 'reaction' ? processingLog({ project, agent, isMember }) : null,
    agentRuns({ project, agent }),
  ]
}

function definition(project, agent) {
  const { model } = agent
  const facts = [
    ['Role', agent.role],
    ['Prompt', agent.prompt ? el('p', { class: 'prose' }, agent.prompt) : null],
    ['Prompt of the library', agent.prompt_id],
    ['Model', model ? `${model.provider}/${model.name}` : "the project's default"],
    ['Tools', agent.tools.length > 0 ? agent.tools.map((tool) => el('code', { class: 'chip' }, tool)) : 'none'],
    ['Flow', agent.flow_type === 'single' ? null : flowText(agent)],
    ...(agent.trigger_type === 'schedule' ? scheduleFacts(project, agent) : []),
    ...(agent.trigger_type === 'reaction' ? reactionFacts(agent.reaction_config) : []),
    ['May not', denied(agent.capabilities)],
    ['Step limit', agent.max_steps === null ? null : whole.format(agent.max_steps)],
    ['Timeout', agent.default_timeout === null ? null : seconds.format(agent.default_timeout / 1_000)],
    ['Tokens used', tokensText(agent)],
    ['Id', el('code', {}, agent.id)],
  ]
  return el(
    'dl',
    { class: 'facts' },
    facts
      .filter(([, value]) => value !== null && value !== '')
      .flatMap(([name, value]) => [el('dt', {}, name), el('dd', {}, value)]),
  )
}

function flowText({ flow_type, steps, max_iterations }) {
  if (flow_type === 'sequential') return `sequential, ${steps.length} steps`
  return max_iterations === null ? 'loop' : `loop, at most ${whole.format(max_iterations)} times`
}

function tokensText({ token_used, token_allocation }) {
  const used = whole.format(token_used)
  return token_allocation === null ? used : `${used} of ${whole.format(token_allocation)}`
}

function denied({ canCreateObjects, canUpdateObjects, canDeleteObjects, allowedObjectTypes }) {
  const rules = [
    canCreateObjects ? null : 'create objects',
    canUpdateObjects ? null : 'update objects',
    canDeleteObjects ? null : 'delete objects',
    allowedObjectTypes ? `touch objects of types other than ${allowedObjectTypes.join(', ') || 'none'}` : null,
  ]
  return rules.filter((rule) => rule !== null).join(' · ')
}

const reactionFacts = (config) => [
  [
    'Reacts to',
    [config.events.join(', '), ' of ', config.objectTypes.map((type) => el('code', { class: 'chip' }, type))],
  ],
  [
    'Ignores',
    [config.ignoreSelfTriggered ? 'its own changes' : null, config.ignoreAgentTriggered ? "agents' changes" : null]
      .filter(Boolean)
      .join(' · '),
  ],
  ['Same object twice', config.concurrencyStrategy],
]

function scheduleFacts(project, agent) {
  const next = el('span', {}, agent.enabled ? '…' : 'none while it is disabled')
  if (agent.enabled) showNext(project, agent, next)
  return [
    [
      'Schedule',
      [el('code', { class: 'chip' }, agent.cron_schedule), agent.timezone, ` · after an outage: ${agent.catch_up}`],
    ],
    ['Next run', next],
  ]
}

async function showNext(project, agent, place) {
  try {
    const schedule = await findSchedule(project, agent.id)
    const last = schedule?.last_run_at ? [' · last ', showInstant(schedule.last_run_at)] : []
    const next = schedule?.next_run_at ? [showInstant(schedule.next_run_at)] : ['none']
    place.replaceChildren(...next, ...(project.halted_at ? [' · the project is halted'] : []), ...last)
  } catch (error) {
    place.replaceChildren(error.message)
  }
}

async function findSchedule(project, agentId) {
  let cursor = null
  do {
    const query = new URLSearchParams({ limit: '200', ...(cursor ? { cursor } : {}) })
    const page = await get(`/api/projects/${project.id}/schedule?${query}`)
    const found = page.items.find((each) => each.agent_id === agentId)
    if (found) return found
    cursor = page.next_cursor
  } while (cursor)
  return null
}
