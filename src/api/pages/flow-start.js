import { get, post } from './api.js'
import { announce, el } from './dom.js'
import { field, form } from './form.js'
import { loaded } from './loaded.js'
import { projectAddress } from './projects.js'

/** Starts a template, with its example to begin with, or a flow of the project. */
export function flowStart({ project }) {
  const path = `/api/projects/${project.id}`
  const content = el('div')
  const fold = el('details', { class: 'fold', on: { toggle: fill } }, el('summary', {}, 'Start a flow'), content)
  return fold

  /** What can be started is asked for when somebody wants to know. */
  function fill() {
    if (!fold.open || content.hasChildNodes()) return
    const read = () => Promise.all([get(`${path}/flow-templates`), get(`${path}/flows?limit=200`)])
    content.append(loaded(read, ([templates, flows]) => [startForm(templates.items, flows.items)]))
  }

  function startForm(templates, flows) {
    const choices = [
      ...templates.map((each) => ({ key: `template ${each.name}`, words: each.title, template: each })),
      ...flows.map((each) => ({ key: `flow ${each.id}`, words: `${each.name} (flow of this project)`, flow: each })),
    ]
    const find = (key) => choices.find((each) => each.key === key)
    const usage = el('p', { class: 'hint' })
    const what = field({
      name: 'what',
      label: 'Flow',
      options: choices.map(({ key, words }) => [key, words]),
      on: { change: (event) => choose(event.target.value) },
    })
    const input = field({ name: 'input', label: 'Input', type: 'textarea', rows: 8, class: 'mono', hint: 'JSON.' })
    choose(choices[0].key)
    return form({
      label: 'Start a flow',
      submit: 'Start flow',
      fields: [what, usage, input],
      onSubmit: async (values) => {
        const { template, flow } = find(values.what)
        const named = template ? { template: template.name } : { flow_id: flow.id }
        const run = await post(`${path}/flow-runs`, { ...named, ...inputOf(values.input) })
        announce('The flow is started.')
        location.hash = projectAddress(project.id, 'flows', run.id)
      },
    })

    function choose(key) {
      const { template } = find(key)
      usage.textContent = template ? `${template.description} ${template.usage}` : ''
      input.querySelector('textarea').value = template ? JSON.stringify(template.example.input, null, 2) : ''
    }
  }
}

function inputOf(text) {
  if (text.trim() === '') return {}
  try {
    return { input: JSON.parse(text) }
  } catch (error) {
    throw new Error(`The input is no JSON: ${error.message}`, { cause: error })
  }
}
