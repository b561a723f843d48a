// A new password, by a link that the instance admin made.
import { get, post } from './api.js'
import { el, failure, showInstant, skeleton } from './dom.js'
import { form } from './form.js'

const main = document.getElementById('main')
const token = location.pathname.split('/').at(-1) ?? ''
load()

async function load() {
  show(skeleton(3))
  try {
    show(...resetView(await get(`/api/resets/${token}`)))
    main.querySelector('input[type=password]').focus()
  } catch (error) {
    if (error.status === 404) return show(...unknownView())
    show(el('h1', {}, 'New password'), failure(error, load))
  }
}

function show(...children) {
  main.replaceChildren(el('section', { class: 'card narrow' }, children))
}

const resetView = ({ email, expires_at }) => [
  el('h1', {}, 'Choose a new password'),
  el('p', { class: 'lead' }, `For the account ${email}. Everybody who is signed in to it now is signed out.`),
  el('p', { class: 'dim' }, 'The link works until ', showInstant(expires_at), '.'),
  form({
    label: 'Choose a new password',
    submit: 'Set it and sign in',
    fields: [
      { name: 'username', type: 'hidden', autocomplete: 'username', value: email },
      {
        name: 'password',
        label: 'New password',
        hint: 'At least 8 characters.',
        type: 'password',
        autocomplete: 'new-password',
        required: true,
        minlength: 8,
        maxlength: 200,
      },
    ],
    onSubmit: async ({ password }) => {
      await post(`/api/resets/${token}/accept`, { password })
      location.assign('/')
    },
  }),
]

const unknownView = () => [
  el('h1', {}, 'This link does not work'),
  el('p', {}, 'It is unknown, was used already, was replaced by a newer one, or its 24 hours are over.'),
  el('p', {}, 'Ask the instance admin for a new one.'),
]
