import { post } from './api.js'
import { announce, button, el, failure, section, shortId, showInstant } from './dom.js'
import { pagedList } from './list.js'
import { projectAddress } from './projects.js'
import { statusBadge } from './status.js'

const CAN_BE_RETRIED = ['failed', 'abandoned', 'skipped']

/** What a reacting agent was given to do, and what became of it. */
export function processingLog({ project, agent, isMember }) {
  const path = `/api/projects/${project.id}/agents/${agent.id}/processing-log`
  const problem = el('div')
  const list = pagedList({
    label: 'Entries of the processing log, newest first',
    path,
    limit: 20,
    empty: 'No change has concerned it yet.',
    row: entryRow,
  })
  const refresh = button('Refresh', list.reload, { 'aria-label': 'Refresh the processing log' })
  return section('Processing log', refresh, problem, list.element)

  function entryRow(entry) {
    const object = projectAddress(project.id, 'objects', entry.graph_object_id)
    return el(
      'li',
      { class: 'entry' },
      statusBadge(entry.status),
      el('span', {}, `${entry.event_type} `, el('a', { href: object }, shortId(entry.graph_object_id))),
      el('span', { class: 'dim' }, `version ${entry.object_version}`),
      el('span', { class: 'dim' }, showInstant(entry.created_at)),
      isMember && CAN_BE_RETRIED.includes(entry.status)
        ? el(
            'span',
            { class: 'buttons' },
            button('Retry', (event) => retry(entry, event.currentTarget)),
          )
        : null,
      entry.error_message ? el('p', { class: 'wide prose dim' }, entry.error_message) : null,
    )
  }

  async function retry(entry, pressed) {
    if (pressed) pressed.disabled = true
    try {
      await post(`${path}/${entry.id}/retry`)
      problem.replaceChildren()
      announce('It is tried again.')
      await list.reload()
      list.focus()
    } catch (error) {
      problem.replaceChildren(failure(error, () => retry(entry, null)))
      if (pressed) pressed.disabled = false
    }
  }
}
