import { patch, remove } from './api.js'
import { confirm } from './dialogs.js'
import { announce, button, el, failure } from './dom.js'
import { projectAddress } from './projects.js'

/** What an admin does to an agent. What fails is shown in `problem`; without `onDelete` it cannot be deleted here. */
export function agentButtons({ project, agent, problem, onChange, onDelete }) {
  const path = `/api/projects/${project.id}/agents/${agent.id}`
  const word = agent.enabled ? 'Disable' : 'Enable'
  return el(
    'span',
    { class: 'buttons' },
    el(
      'a',
      {
        class: 'button',
        href: projectAddress(project.id, 'agents', agent.id, 'edit'),
        'aria-label': `Edit ${agent.name}`,
      },
      'Edit',
    ),
    button(word, (event) => turn(event.currentTarget), { 'aria-label': `${word} ${agent.name}` }),
    onDelete ? button('Delete…', drop, { class: 'danger', 'aria-label': `Delete ${agent.name}` }) : null,
  )

  async function turn(pressed) {
    if (pressed) pressed.disabled = true
    try {
      await patch(path, { enabled: !agent.enabled })
      problem.replaceChildren()
      announce(`${agent.name} is ${agent.enabled ? 'disabled' : 'enabled'}.`)
      await onChange()
    } catch (error) {
      problem.replaceChildren(failure(error, () => turn(null)))
    } finally {
      if (pressed) pressed.disabled = false
    }
  }

  async function drop() {
    const text = 'Nothing starts it any more and its hooks close. Its runs stay. This cannot be taken back.'
    if (!(await confirm({ title: `Delete ${agent.name}?`, text, action: 'Delete' }))) return
    try {
      await remove(path)
      announce(`${agent.name} is deleted.`)
      onDelete()
    } catch (error) {
      problem.replaceChildren(failure(error, drop))
    }
  }
}
