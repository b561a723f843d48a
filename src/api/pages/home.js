// The first page: the state of this Muster, signing in, and what an admin needs before the console exists. One part of
// the page is one file; what they show comes from the API each time and is kept nowhere.
import { accountMenu } from './account.js'
import { get, onSignedOut } from './api.js'
import { el, failure, focusOn, skeleton } from './dom.js'
import { projectView } from './project-panel.js'
import { projectsView } from './projects.js'
import { watchReadiness } from './readiness.js'
import { signInView } from './sign-in.js'

const main = document.getElementById('main')
const account = document.getElementById('account')
let hasFailed = false

watchReadiness({
  state: document.getElementById('state'),
  stale: document.getElementById('stale'),
  onReady: () => hasFailed && start(),
})
onSignedOut(() => showSignIn('ended'))
start()

async function start() {
  const asked = new URLSearchParams(location.search).get('sign_in')
  if (location.search) history.replaceState(null, '', `/${location.hash}`)
  main.replaceChildren(el('div', { class: 'card' }, skeleton(4)))
  hasFailed = false
  try {
    showHome(await get('/api/me'))
  } catch (error) {
    if (error.status === 401) return showSignIn(asked === 'expired' ? 'expired' : null)
    hasFailed = true
    main.replaceChildren(el('div', { class: 'card narrow' }, el('h1', {}, 'Muster'), failure(error, start)))
  }
}

function showSignIn(reason) {
  window.onhashchange = null
  account.replaceChildren()
  document.title = 'Sign in · Muster'
  main.replaceChildren(signInView({ reason, onSignedIn: showHome }))
  main.querySelector('input').focus()
}

function showHome(me) {
  const content = el('div', { class: 'content' })
  const projects = projectsView({ me, isOpen: (id) => id === openProject()?.id })
  account.replaceChildren(accountMenu({ me, onSignedOut: () => showSignIn(null) }))
  main.replaceChildren(el('div', { class: 'columns' }, projects.element, content))
  window.onhashchange = () => {
    if (!location.hash || location.hash.startsWith('#/')) show()
  }
  show()

  function show() {
    const open = openProject()
    content.replaceChildren(open ? projectView({ me, ...open, onChange: projects.reload }) : welcome(me))
    projects.markOpen()
    if (!open) {
      document.title = 'Muster'
      focusOn(content.querySelector('h1'))
    }
  }
}

const welcome = (me) =>
  el(
    'section',
    { class: 'project', 'aria-label': 'Welcome' },
    el('h1', {}, 'Muster'),
    el('p', { class: 'lead' }, 'Runs teams of AI agents that people can trust with real work.'),
    el(
      'p',
      {},
      `You are signed in as ${me.name ?? me.email}. Open a project to see its agents, and what waits for you.`,
    ),
    el('p', {}, 'Everything here and more is in the ', el('a', { href: '/docs' }, 'API'), '.'),
    el('p', { class: 'hint' }, 'A sign-in link works once. With a password, set under your name above, you need none.'),
  )

function openProject() {
  const [, id, panel, rest] = /^#\/projects\/([^/]+)\/(\w+)((?:\/[\w-]+)*)$/.exec(location.hash) ?? []
  return id ? { id, panel, parts: rest.split('/').slice(1) } : null
}
