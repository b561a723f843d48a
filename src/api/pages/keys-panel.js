import { post, remove } from './api.js'
import { confirm, shownOnce } from './dialogs.js'
import { announce, button, el, failure, showDay, showInstant } from './dom.js'
import { form } from './form.js'
import { pagedList } from './list.js'

export function keysPanel({ project }) {
  const path = `/api/projects/${project.id}/keys`
  const fresh = el('div')
  const list = pagedList({
    label: 'API keys',
    path,
    empty: 'No key yet. Programs use one to work in this project: create the first above.',
    row: keyRow,
  })
  const create = form({
    label: 'Create a key',
    submit: 'Create key',
    isInline: true,
    fields: [
      { name: 'name', label: 'Name', required: true, maxlength: 200, autocomplete: 'off', placeholder: 'ci' },
      { name: 'role', label: 'Role', options: ['member', 'viewer', 'admin'] },
    ],
    onSubmit: async (values) => {
      const key = await post(path, values)
      create.reset()
      const once = shownOnce({
        title: `The key ${key.name}`,
        value: key.key,
        hint: 'It is shown only now. Send it as “Authorization: Bearer …”.',
      })
      fresh.replaceChildren(once.element)
      once.focus()
      await list.reload()
    },
  })
  return el('div', { class: 'panel' }, create, fresh, list.element)

  function keyRow(key) {
    return el(
      'li',
      {},
      el('span', { class: 'name' }, key.name),
      el('span', { class: 'badge' }, key.role),
      el('code', {}, `${key.prefix}…`),
      el(
        'span',
        { class: 'dim' },
        key.last_used_at ? ['used ', showInstant(key.last_used_at)] : 'never used',
        ' · created ',
        showDay(key.created_at),
        key.expires_at ? [' · ends ', showInstant(key.expires_at)] : null,
      ),
      button('Revoke', () => revoke(key), { 'aria-label': `Revoke the key ${key.name}` }),
    )
  }

  async function revoke(key) {
    const text = 'Programs that use it are refused within five seconds. This cannot be taken back.'
    if (!(await confirm({ title: `Revoke ${key.name}?`, text, action: 'Revoke' }))) return
    try {
      await remove(`${path}/${key.id}`)
      announce(`The key ${key.name} is revoked.`)
      await list.reload()
      list.focus()
    } catch (error) {
      fresh.replaceChildren(failure(error, () => revoke(key)))
    }
  }
}
