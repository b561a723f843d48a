import { changedFields, definitionFrom, modelText } from './agent-definition.js'
import { patch, post } from './api.js'
import { announce, el } from './dom.js'
import { form } from './form.js'
import { projectAddress } from './projects.js'
import { TRIGGERS, triggerFields } from './trigger-fields.js'

const MODES = [
  ['execute', 'execute: it makes changes itself'],
  ['suggest', 'suggest: people approve each change'],
  ['hybrid', 'hybrid: it chooses for each change'],
]

/** Makes an agent, or changes the one that is given. */
export function agentForm({ project, agent }) {
  const groups = TRIGGERS.map((trigger) => ({ trigger, element: triggerFields(trigger, agent) }))
  const isNew = agent === null
  const element = form({
    label: isNew ? 'New agent' : `Edit ${agent.name}`,
    submit: isNew ? 'Create agent' : 'Save',
    fields: [...mainFields(agent), ...groups.map((each) => each.element)],
    beside: [el('a', { class: 'button', href: address(agent?.id) }, 'Cancel')],
    onSubmit: save,
  })
  const trigger = element.elements.namedItem('trigger_type')
  trigger.addEventListener('change', showGroup)
  showGroup()
  return el('div', { class: 'panel' }, el('h2', {}, isNew ? 'New agent' : `Edit ${agent.name}`), element)

  function address(id) {
    return id ? projectAddress(project.id, 'agents', id) : projectAddress(project.id, 'agents')
  }

  /** What is disabled is neither checked nor sent. */
  function showGroup() {
    for (const each of groups) {
      each.element.hidden = each.trigger !== trigger.value
      each.element.disabled = each.element.hidden
    }
  }

  async function save(values) {
    const path = `/api/projects/${project.id}/agents`
    const definition = definitionFrom(values, agent)
    const saved = isNew
      ? await post(path, definition)
      : await patch(`${path}/${agent.id}`, changedFields(definition, agent))
    announce(`The agent ${saved.name} is ${isNew ? 'created' : 'saved'}.`)
    location.hash = address(saved.id)
  }
}

const mainFields = (agent) => [
  {
    name: 'name',
    label: 'Name',
    value: agent?.name,
    required: true,
    maxlength: 200,
    autocomplete: 'off',
    autofocus: true,
  },
  { name: 'role', label: 'Role', value: agent?.role, maxlength: 1_000, autocomplete: 'off', placeholder: 'Reviewer' },
  {
    name: 'prompt',
    label: 'Prompt',
    type: 'textarea',
    rows: 6,
    maxlength: 200_000,
    value: agent?.prompt ?? '',
    hint: agent?.prompt_id ? `Empty: the prompt ${agent.prompt_id} of the library, as now.` : null,
  },
  {
    name: 'model',
    label: 'Model',
    value: modelText(agent?.model ?? null),
    autocomplete: 'off',
    placeholder: 'provider/name',
    pattern: '\\s*[^\\/\\s]+\\/.*\\S\\s*',
    title: 'provider/name',
    hint: "Empty: the project's default model.",
  },
  {
    name: 'tools',
    label: 'Tools',
    value: agent?.tools.join(', '),
    autocomplete: 'off',
    placeholder: 'object_search, object_update',
    hint: 'Separated by commas.',
  },
  { name: 'execution_mode', label: 'Execution mode', options: MODES, value: agent?.execution_mode },
  { name: 'trigger_type', label: 'Trigger type', options: TRIGGERS, value: agent?.trigger_type },
]
