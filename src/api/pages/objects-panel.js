import { post } from './api.js'
import { visible } from './diff.js'
import { announce, el, showInstant } from './dom.js'
import { form } from './form.js'
import { pagedList } from './list.js'
import { createNames } from './names.js'
import { objectDetail, objectName } from './object-detail.js'
import { projectAddress } from './projects.js'

/** The project's objects, or one of them. */
export function objectsPanel(context) {
  return context.parts.length > 0 ? objectDetail({ ...context, id: context.parts[0] }) : objectList(context)
}

function objectList({ me, project, isMember }) {
  const path = `/api/projects/${project.id}/objects`
  const names = createNames({ me, project })
  let asked = {}
  const list = pagedList({
    label: 'Objects',
    path,
    filter: () => asked,
    empty: 'No object is found.',
    row: (object) =>
      el(
        'li',
        {},
        el('span', { class: 'badge' }, visible(object.type)),
        el('a', { class: 'name', href: projectAddress(project.id, 'objects', object.id) }, objectName(object)),
        el(
          'span',
          { class: 'dim' },
          `version ${object.version} by `,
          names.author({ type: object.actor_type, id: object.actor_id }),
          ' · ',
          showInstant(object.updated_at),
        ),
      ),
  })
  const search = form({
    label: 'Find objects',
    submit: 'Search',
    isInline: true,
    isQuiet: true,
    fields: [
      { name: 'type', label: 'Type', maxlength: 200, autocomplete: 'off', placeholder: 'all types' },
      { name: 'q', label: 'Search', type: 'search', maxlength: 500, autocomplete: 'off', placeholder: 'words' },
    ],
    onSubmit: async (values) => {
      asked = Object.fromEntries(Object.entries(values).filter(([, text]) => text.trim() !== ''))
      await list.reload()
    },
  })
  return el('div', { class: 'panel' }, search, isMember ? createForm(project, path) : null, list.element)
}

function createForm(project, path) {
  return el(
    'details',
    { class: 'fold' },
    el('summary', {}, 'New object'),
    form({
      label: 'Create an object',
      submit: 'Create object',
      fields: [
        { name: 'type', label: 'Type', required: true, maxlength: 200, autocomplete: 'off', placeholder: 'Person' },
        {
          name: 'key',
          label: 'Key',
          maxlength: 500,
          autocomplete: 'off',
          hint: 'May be left out; unique in its type.',
        },
        {
          name: 'properties',
          label: 'Properties',
          type: 'textarea',
          rows: 4,
          class: 'mono',
          value: '{}',
          hint: 'JSON.',
        },
      ],
      onSubmit: async ({ type, key, properties }) => {
        const object = await post(path, { type, ...(key === '' ? {} : { key }), properties: parse(properties) })
        announce('The object is created.')
        location.hash = projectAddress(project.id, 'objects', object.id)
      },
    }),
  )
}

function parse(text) {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Error(`The properties are no JSON: ${error.message}`, { cause: error })
  }
}
