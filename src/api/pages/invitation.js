// Accepting an invitation: what it is for, who one is, and in.
import { get, post } from './api.js'
import { el, failure, showInstant, skeleton } from './dom.js'
import { form } from './form.js'

const main = document.getElementById('main')
const token = location.pathname.split('/').at(-1) ?? ''
load()

async function load() {
  show(skeleton(4))
  try {
    show(...invitationView(await get(`/api/invitations/${token}`), await whoAmI()))
    main.querySelector('input, button').focus()
  } catch (error) {
    if (error.status === 404) return show(...unknownView())
    show(el('h1', {}, 'Invitation'), failure(error, load))
  }
}

function show(...children) {
  main.replaceChildren(el('section', { class: 'card narrow' }, children))
}

/** The address of whoever is signed in here, or null. */
const whoAmI = () =>
  get('/api/me').then(
    (me) => me.email,
    () => null,
  )

function invitationView(invitation, myEmail) {
  const { project, role, email, expires_at } = invitation
  const isMe = myEmail !== null && myEmail.toLowerCase() === email.toLowerCase()
  return [
    el('h1', {}, `Join ${project.name}`),
    el('p', { class: 'lead' }, `You are invited to the project ${project.name} on this Muster.`),
    el(
      'dl',
      {},
      el('dt', {}, 'Email'),
      el('dd', {}, email),
      el('dt', {}, 'Role'),
      el('dd', {}, role),
      el('dt', {}, 'Valid until'),
      el('dd', {}, showInstant(expires_at)),
    ),
    myEmail !== null && !isMe
      ? el('p', { class: 'note wait' }, `You are signed in as ${myEmail}. Accepting signs you in as ${email} instead.`)
      : null,
    form({
      label: 'Accept the invitation',
      submit: 'Accept',
      fields: isMe ? [] : person(email),
      onSubmit: accept,
    }),
  ]
}

/** The page cannot know whether there is an account, so it asks for what serves both. */
const person = (email) => [
  { name: 'username', type: 'hidden', autocomplete: 'username', value: email },
  {
    name: 'name',
    label: 'Your name',
    hint: `Not needed where ${email} has an account on this Muster.`,
    autocomplete: 'name',
    maxlength: 200,
  },
  {
    name: 'password',
    label: 'Password',
    hint: 'The one of your account, or, if you are new here, one that you choose: at least 8 characters.',
    type: 'password',
    autocomplete: 'current-password',
    required: true,
    minlength: 8,
    maxlength: 200,
  },
]

async function accept({ username: _, name, ...person }) {
  await post(`/api/invitations/${token}/accept`, name ? { name, ...person } : person)
  location.assign('/')
}

const unknownView = () => [
  el('h1', {}, 'This invitation does not work'),
  el('p', {}, 'It is unknown, was used already, was withdrawn, or its seven days are over.'),
  el(
    'p',
    {},
    'Ask whoever sent it for a new one. If you have joined already, ',
    el('a', { href: '/' }, 'sign in'),
    '.',
  ),
]
