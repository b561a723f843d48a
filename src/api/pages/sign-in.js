import { post } from './api.js'
import { el } from './dom.js'
import { form } from './form.js'

const REASONS = {
  expired: 'That sign-in link was used already, or its hour is over.',
  ended: 'Your session has ended. Sign in again to go on.',
}

/** `reason` is a key of REASONS or null. */
export function signInView({ reason, onSignedIn }) {
  return el(
    'section',
    { class: 'card narrow', 'aria-labelledby': 'sign-in-title' },
    el('h1', { id: 'sign-in-title' }, 'Muster'),
    el('p', { class: 'lead' }, 'Runs teams of AI agents that people can trust with real work.'),
    reason ? el('p', { class: 'note wait', role: 'alert' }, REASONS[reason]) : null,
    form({
      label: 'Sign in',
      submit: 'Sign in',
      fields: [
        { name: 'email', label: 'Email', type: 'email', autocomplete: 'username', required: true },
        { name: 'password', label: 'Password', type: 'password', autocomplete: 'current-password', required: true },
      ],
      onSubmit: async (values) => onSignedIn(await post('/api/auth/sign-in', values)),
    }),
    el(
      'p',
      { class: 'hint' },
      'No password yet? Every start prints a sign-in link that works once. A new one comes from ',
      el('code', {}, 'npm run muster -- keys link'),
      '.',
    ),
  )
}
