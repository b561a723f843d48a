import { post } from './api.js'
import { announce, el, showDay } from './dom.js'
import { form } from './form.js'
import { pagedList } from './list.js'

/** `rest` leads further into a panel: an agent, an object. */
export const projectAddress = (id, ...rest) => `#/projects/${[id, ...rest].map(encodeURIComponent).join('/')}`

/** The projects this person can see; an instance admin can make one. */
export function projectsView({ me, isOpen }) {
  const list = pagedList({
    label: 'Projects',
    path: '/api/projects',
    empty: me.instance_admin ? 'There is no project yet. Create the first one below.' : 'You are in no project yet.',
    row: (project) =>
      el(
        'li',
        {},
        el(
          'a',
          { href: projectAddress(project.id, 'agents'), 'data-project': project.id },
          el('span', { class: 'name' }, project.name),
          haltedBadge(project),
          el('span', { class: 'dim' }, 'created ', showDay(project.created_at)),
        ),
      ),
  })
  const element = el(
    'section',
    { class: 'rail', 'aria-labelledby': 'projects-title' },
    el('h2', { id: 'projects-title' }, 'Projects'),
    list.element,
    me.instance_admin ? createForm() : null,
  )
  new MutationObserver(markOpen).observe(list.element, { childList: true, subtree: true })
  return { element, reload: list.reload, markOpen }

  function markOpen() {
    for (const link of element.querySelectorAll('[data-project]')) {
      if (isOpen(link.dataset.project)) link.setAttribute('aria-current', 'page')
      else link.removeAttribute('aria-current')
    }
  }

  function createForm() {
    const made = form({
      label: 'Create a project',
      submit: 'Create',
      isInline: true,
      isQuiet: true,
      fields: [{ name: 'name', label: 'New project', required: true, maxlength: 200, autocomplete: 'off' }],
      onSubmit: async ({ name }) => {
        const project = await post('/api/projects', { name })
        made.reset()
        announce(`The project ${project.name} is created.`)
        await list.reload()
        location.hash = projectAddress(project.id, 'agents')
      },
    })
    return made
  }
}

export const haltedBadge = (project) =>
  project.halted_at ? el('span', { class: 'badge halted', title: project.halted_at }, '■ halted') : null
