import { post, remove } from './api.js'
import { confirm, copyable, shownOnce } from './dialogs.js'
import { announce, button, el, failure, section, showDay, showInstant } from './dom.js'
import { form } from './form.js'
import { pagedList } from './list.js'

const SECRET_HINT =
  'It is shown only now. Senders sign with it (Standard Webhooks), or send it as “Authorization: Bearer …”.'

/** The addresses at which an agent takes deliveries. */
export function hooksSection({ project, agent, isAdmin }) {
  const path = `/api/projects/${project.id}/agents/${agent.id}/hooks`
  const fresh = el('div')
  const list = pagedList({
    label: 'Webhooks',
    path,
    empty: isAdmin ? 'No hook yet: nothing can start this agent. Create the first above.' : 'No hook yet.',
    row: hookRow,
  })
  return section('Webhooks', null, isAdmin ? createForm() : null, fresh, list.element)

  function createForm() {
    const create = form({
      label: 'Create a webhook',
      submit: 'Create hook',
      isInline: true,
      fields: [
        { name: 'name', label: 'Name', required: true, maxlength: 200, autocomplete: 'off', placeholder: 'github' },
      ],
      onSubmit: async (values) => {
        const hook = await post(path, values)
        create.reset()
        await showSecret(hook, `The secret of ${hook.name}`)
      },
    })
    return create
  }

  async function showSecret(hook, title) {
    const once = shownOnce({ title, value: hook.secret, hint: SECRET_HINT })
    fresh.replaceChildren(once.element)
    once.focus()
    await list.reload()
  }

  function hookRow(hook) {
    return el(
      'li',
      { class: 'hook' },
      el('span', { class: 'name' }, hook.name),
      el(
        'span',
        { class: 'dim' },
        hook.last_used_at ? ['used ', showInstant(hook.last_used_at)] : 'never used',
        ' · created ',
        showDay(hook.created_at),
        hook.old_secret_until ? [' · old secret until ', showInstant(hook.old_secret_until)] : null,
      ),
      isAdmin
        ? el(
            'span',
            { class: 'buttons' },
            button('Rotate…', () => rotate(hook), { 'aria-label': `Rotate the secret of ${hook.name}` }),
            button('Delete…', () => drop(hook), { class: 'danger', 'aria-label': `Delete the hook ${hook.name}` }),
          )
        : null,
      el('div', { class: 'wide' }, copyable({ label: `the URL of ${hook.name}`, value: hook.url })),
    )
  }

  async function rotate(hook) {
    const text = 'It gets a new secret. The present one holds for 24 hours more; one before that ends at once.'
    const isSure = await confirm({
      title: `Rotate the secret of ${hook.name}?`,
      text,
      action: 'Rotate',
      isDanger: false,
    })
    if (!isSure) return
    try {
      await showSecret(await post(`${path}/${hook.id}/rotate`), `The new secret of ${hook.name}`)
    } catch (error) {
      fresh.replaceChildren(failure(error, () => rotate(hook)))
    }
  }

  async function drop(hook) {
    const text = 'Nothing is taken at its address any more. This cannot be taken back.'
    if (!(await confirm({ title: `Delete the hook ${hook.name}?`, text, action: 'Delete' }))) return
    try {
      await remove(`${path}/${hook.id}`)
      fresh.replaceChildren()
      announce(`The hook ${hook.name} is deleted.`)
      await list.reload()
      list.focus()
    } catch (error) {
      fresh.replaceChildren(failure(error, () => drop(hook)))
    }
  }
}
