import { post } from './api.js'
import { announce, button, el } from './dom.js'
import { form } from './form.js'

/** Who is signed in, at the right of the bar, with what one does with an account. */
export function accountMenu({ me, onSignedOut }) {
  const details = el(
    'details',
    { class: 'menu', on: { keydown: closeOnEscape } },
    el('summary', {}, me.name ?? me.email ?? 'Account'),
    el(
      'div',
      { class: 'sheet' },
      el('p', {}, me.email ?? '', me.instance_admin ? el('span', { class: 'badge' }, 'instance admin') : null),
      passwordForm(me),
      button('Sign out', signOut),
    ),
  )
  document.addEventListener('click', (event) => {
    if (!details.contains(event.target)) details.open = false
  })
  return details

  function closeOnEscape(event) {
    if (event.key !== 'Escape' || !details.open) return
    details.open = false
    details.querySelector('summary').focus()
  }

  async function signOut() {
    await post('/api/auth/sign-out').catch(() => {})
    onSignedOut()
  }
}

function passwordForm(me) {
  const element = form({
    label: 'Set a password',
    submit: 'Set password',
    isQuiet: true,
    fields: [
      // For password managers: whose password this is.
      { name: 'username', type: 'hidden', autocomplete: 'username', value: me.email ?? '' },
      {
        name: 'current_password',
        label: 'Current password',
        hint: 'Leave empty if you never set one.',
        type: 'password',
        autocomplete: 'current-password',
      },
      {
        name: 'new_password',
        label: 'New password',
        hint: 'At least 8 characters. Your other sessions end.',
        type: 'password',
        autocomplete: 'new-password',
        required: true,
        minlength: 8,
        maxlength: 200,
      },
    ],
    onSubmit: async ({ current_password, new_password }) => {
      await post('/api/auth/password', { new_password, ...(current_password ? { current_password } : {}) })
      element.reset()
      done.hidden = false
      announce('The password is set.')
    },
  })
  const done = el('p', { class: 'note good', hidden: true }, 'The password is set.')
  return el('div', {}, el('h2', {}, 'Password'), element, done)
}
