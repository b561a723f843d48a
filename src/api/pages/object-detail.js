import { get } from './api.js'
import { propertiesView, visible } from './diff.js'
import { el, section, shortId, showInstant } from './dom.js'
import { pagedList } from './list.js'
import { loaded } from './loaded.js'
import { createNames } from './names.js'
import { projectAddress } from './projects.js'
import { statusBadge } from './status.js'

const OPS = { create: 'created', update: 'changed', delete: 'deleted' }

/** What people would call it. */
export function objectName({ key, properties, id }) {
  const name = key ?? [properties.name, properties.title].find((each) => typeof each === 'string' && each.trim() !== '')
  return name === undefined ? shortId(id) : visible(name)
}

/** One object: its properties, and every version with who made it. */
export function objectDetail({ me, project, id }) {
  const path = `/api/projects/${project.id}/objects/${id}`
  const names = createNames({ me, project })
  return loaded(
    () => get(path),
    (object) => [
      el('p', { class: 'crumbs' }, el('a', { href: projectAddress(project.id, 'objects') }, '← Objects')),
      el(
        'div',
        { class: 'title' },
        el('h2', { class: 'heading' }, objectName(object)),
        el('span', { class: 'badge' }, visible(object.type)),
        object.deleted_at ? statusBadge('cancelled', 'deleted') : null,
      ),
      el(
        'p',
        { class: 'dim' },
        `version ${object.version} · created `,
        showInstant(object.created_at),
        ' · ',
        shortId(object.id),
      ),
      section('Properties', null, propertiesOf(object.properties)),
      section('History', null, history(path, names)),
    ],
  )
}

const propertiesOf = (properties) =>
  Object.keys(properties).length > 0 ? propertiesView(properties) : el('p', { class: 'empty' }, 'It has none.')

function history(path, names) {
  return pagedList({
    label: 'Versions, newest first',
    path: `${path}/history`,
    empty: 'It has no history.',
    row: (version) =>
      el(
        'li',
        { class: 'entry' },
        el('span', { class: 'name' }, `Version ${version.version}`),
        el(
          'span',
          {},
          `${OPS[version.op]} by `,
          names.author({ type: version.actor_type, id: version.actor_id }, version.run_id),
          version.approved_by ? [', approved by ', names.person(version.approved_by)] : null,
        ),
        el('span', { class: 'dim' }, showInstant(version.at)),
        version.run_id ? el('span', { class: 'dim' }, 'run ', shortId(version.run_id)) : null,
        el('details', { class: 'wide' }, el('summary', {}, 'Properties'), propertiesOf(version.properties)),
      ),
  }).element
}
