import { patch, post, remove } from './api.js'
import { confirm, shownOnce } from './dialogs.js'
import { announce, button, el, failure, showDay } from './dom.js'
import { form } from './form.js'
import { pagedList } from './list.js'

const ROLES = ['viewer', 'member', 'admin']

export function membersPanel({ me, project, isAdmin }) {
  const path = `/api/projects/${project.id}/members`
  const fresh = el('div')
  const list = pagedList({
    label: 'Members',
    path,
    empty: isAdmin ? 'Nobody yet. Invite the first person above.' : 'Nobody yet.',
    row: memberRow,
  })
  return el('div', { class: 'panel' }, isAdmin ? inviteForm() : null, fresh, list.element)

  function inviteForm() {
    const invite = form({
      label: 'Invite a person',
      submit: 'Invite',
      isInline: true,
      fields: [
        { name: 'email', label: 'Email', type: 'email', required: true, maxlength: 254, autocomplete: 'off' },
        { name: 'role', label: 'Role', options: ['member', 'viewer', 'admin'] },
      ],
      onSubmit: async (values) => {
        const member = await post(path, values)
        invite.reset()
        const once = shownOnce({
          title: `The invitation for ${member.email}`,
          value: member.invitation_url,
          hint: 'Send this link to them; Muster sends no mail. It works once, for seven days, and is shown only now.',
        })
        fresh.replaceChildren(once.element)
        once.focus()
        await list.reload()
      },
    })
    return invite
  }

  function memberRow(member) {
    const isMe = member.user_id !== null && member.user_id === me.id
    return el(
      'li',
      {},
      el('span', { class: 'name' }, member.name ?? member.email, isMe ? ' (you)' : ''),
      member.status === 'invited' ? el('span', { class: 'badge wait' }, '◌ invited') : null,
      isAdmin ? null : el('span', { class: 'badge' }, member.role),
      el(
        'span',
        { class: 'dim' },
        member.name ? `${member.email} · ` : '',
        member.status === 'invited' ? 'link ends ' : 'since ',
        showDay(member.invitation_expires_at ?? member.created_at),
      ),
      isAdmin ? roleSelect(member) : null,
      me.instance_admin && member.user_id !== null
        ? button('New password…', () => reset(member), { 'aria-label': `Reset the account ${member.email}` })
        : null,
      isAdmin ? button('Remove', () => drop(member), { 'aria-label': `Remove ${member.email}` }) : null,
    )
  }

  function roleSelect(member) {
    const select = el(
      'select',
      { 'aria-label': `Role of ${member.email}`, on: { change: () => changeRole(member, select) } },
      ROLES.map((role) => el('option', { value: role, selected: role === member.role }, role)),
    )
    return select
  }

  async function changeRole(member, select) {
    select.disabled = true
    try {
      const changed = await patch(`${path}/${member.id}`, { role: select.value })
      member.role = changed.role
      fresh.replaceChildren()
      announce(`${member.email} is ${changed.role} now.`)
    } catch (error) {
      select.value = member.role
      fresh.replaceChildren(failure(error, () => list.reload()))
    } finally {
      select.disabled = false
      select.focus()
    }
  }

  async function reset(member) {
    const text = 'You get a link by which they choose a new password. Using it signs everybody else out of the account.'
    if (!(await confirm({ title: `Reset the account ${member.email}?`, text, action: 'Make the link' }))) return
    try {
      const { reset_url } = await post(`/api/users/${member.user_id}/reset`)
      const once = shownOnce({
        title: `The link for ${member.email}`,
        value: reset_url,
        hint: 'Send it to the person whose address this is. It works once, for 24 hours, and is shown only now.',
      })
      fresh.replaceChildren(once.element)
      once.focus()
    } catch (error) {
      fresh.replaceChildren(failure(error, () => reset(member)))
    }
  }

  async function drop(member) {
    const isInvited = member.status === 'invited'
    const text = isInvited ? 'The invitation link stops working.' : 'They lose access to the project at once.'
    if (!(await confirm({ title: `Remove ${member.email}?`, text, action: 'Remove' }))) return
    try {
      await remove(`${path}/${member.id}`)
      fresh.replaceChildren()
      announce(`${member.email} is removed.`)
      await list.reload()
      list.focus()
    } catch (error) {
      fresh.replaceChildren(failure(error, () => drop(member)))
    }
  }
}
