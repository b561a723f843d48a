import { el, shortId, showInstant } from './dom.js'
import { pagedList } from './list.js'

const DETAILS_SHOWN = 200

/** Who did what in the project, newest first. */
export function auditPanel({ me, project }) {
  const list = pagedList({
    label: 'Audit entries, newest first',
    path: `/api/projects/${project.id}/audit`,
    empty: 'Nothing has been done in this project yet.',
    row: (entry) =>
      el(
        'li',
        { class: 'entry' },
        el('span', { class: 'dim' }, showInstant(entry.at)),
        el('span', { class: 'name' }, entry.action),
        el('span', {}, 'by ', actorName(entry.actor), entry.address ? ` from ${entry.address}` : ''),
        detailsOf(entry),
      ),
  })
  return el('div', { class: 'panel' }, list.element)

  function actorName({ type, id }) {
    if (type === 'user' && id === me.id) return 'you'
    return id ? el('span', {}, `${type} `, shortId(id)) : type.replace('_', ' ')
  }
}

function detailsOf({ target, details }) {
  const text = Object.keys(details).length === 0 ? '' : JSON.stringify(details)
  const shown = text.length > DETAILS_SHOWN ? `${text.slice(0, DETAILS_SHOWN)}…` : text
  const on = target.id ? [`on ${target.type} `, shortId(target.id), ' '] : []
  return el('span', { class: 'dim wide' }, on, shown ? el('code', {}, shown) : null)
}
