import { EVENTS } from './agent-definition.js'
import { el } from './dom.js'
import { field } from './form.js'

export const TRIGGERS = ['manual', 'schedule', 'webhook', 'reaction']

/** The fields that belong to one trigger. */
export function triggerFields(trigger, agent) {
  const content = { manual: manualNote, schedule: scheduleFields, webhook: webhookNote, reaction: reactionFields }
  return el('fieldset', { class: 'group', 'aria-label': `When: ${trigger}` }, content[trigger](agent))
}

const note = (text) => el('p', { class: 'hint' }, text)
const manualNote = () => note('It runs when a person or a program triggers it.')
const webhookNote = (agent) =>
  note(
    agent?.trigger_type === 'webhook'
      ? "Its hooks are managed on the agent's page."
      : "It runs when a hook receives a delivery. Hooks are made on the agent's page, once it is saved.",
  )

const scheduleFields = (agent) => [
  field({
    name: 'cron_schedule',
    label: 'Schedule',
    value: agent?.cron_schedule,
    required: true,
    maxlength: 200,
    autocomplete: 'off',
    placeholder: '0 9 * * 1-5',
    hint: 'Five fields: minute, hour, day of month, month, day of week.',
  }),
  field({ name: 'timezone', label: 'Time zone', value: agent?.timezone ?? 'UTC', required: true, list: 'time-zones' }),
  el(
    'datalist',
    { id: 'time-zones' },
    ['UTC', ...Intl.supportedValuesOf('timeZone')].map((value) => el('option', { value })),
  ),
  field({
    name: 'catch_up',
    label: 'After an outage',
    options: [
      ['once', 'once: one run for all that was missed'],
      ['skip', 'skip: what was missed is left out'],
      ['all', 'all: every run that was missed'],
    ],
    value: agent?.catch_up,
  }),
]

function reactionFields(agent) {
  const config = agent?.reaction_config
  const check = (name, label, checked) => field({ name, label, type: 'checkbox', checked })
  return [
    field({
      name: 'object_types',
      label: 'Object types',
      type: 'textarea',
      rows: 2,
      required: true,
      value: config?.objectTypes.join('\n'),
      hint: 'One per line, spelled exactly. * means all.',
    }),
    el(
      'div',
      { class: 'checks', role: 'group', 'aria-label': 'Events' },
      el('span', { class: 'label' }, 'Events'),
      EVENTS.map((event) => check(`event_${event}`, event, config?.events.includes(event) ?? true)),
    ),
    check('ignore_self', 'Ignore its own changes', config?.ignoreSelfTriggered ?? true),
    check('ignore_agents', "Ignore all agents' changes", config?.ignoreAgentTriggered ?? false),
  ]
}
