import { visible } from './diff.js'
import { el } from './dom.js'
import { flowResults } from './flow-results.js'
import { isActive } from './flow-time.js'

const MOST_CHARACTERS = 20_000

/** What a flow run was given, and what it gave or why it did not. */
export function flowOutcome({ path }) {
  const element = el('div', { class: 'section' })
  let shown = ''
  return { element, update }

  function update(run) {
    if (shown === run.status) return
    shown = run.status
    element.replaceChildren(
      ...[
        run.error === null ? null : el('p', { class: 'note bad' }, run.error),
        isActive(run) || run.output === null ? null : fold('Output', run.output, `${path}/output`),
        isActive(run) ? null : flowResults(run, `${path}/output?part=results`),
        run.input === null ? null : fold('Input', run.input, null),
      ].filter(Boolean),
    )
  }
}

function fold(title, value, url) {
  const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2)
  const isCut = text.length > MOST_CHARACTERS || value.truncated === true
  return el(
    'details',
    {},
    el('summary', {}, title),
    el('pre', { class: 'facts' }, visible(text.slice(0, MOST_CHARACTERS))),
    isCut && url ? el('p', { class: 'hint' }, el('a', { href: url }, 'All of it')) : null,
  )
}
