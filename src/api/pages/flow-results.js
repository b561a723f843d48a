import { visible } from './diff.js'
import { el } from './dom.js'

const MOST_RESULTS = 100
const MOST_CHARACTERS = 2_000
const whole = new Intl.NumberFormat()

/** What each finished task with an id gave. Null where none did. All of it is at `url`. */
export function flowResults({ results, output }, url) {
  // Any task may be called truncated, and what it gave is no address to follow.
  if (results.truncated === true && results.url === url) {
    return fold('Results', [hint('They are too large to be shown here. ', url)], output === null)
  }
  const entries = Object.entries(results)
  if (entries.length === 0) return null
  const shown = entries.slice(0, MOST_RESULTS).map(([id, value]) => ({ id, text: textOf(value) }))
  const isCut = shown.length < entries.length || shown.some(({ text }) => text.length > MOST_CHARACTERS)
  const list = el(
    'dl',
    { class: 'facts properties results', 'aria-label': 'Results' },
    shown.map(({ id, text }) => [el('dt', {}, visible(id)), el('dd', {}, el('pre', {}, visible(cut(text))))]),
  )
  const which = shown.length < entries.length ? `${MOST_RESULTS} of ${whole.format(entries.length)} are shown. ` : ''
  return fold(`Results (${whole.format(entries.length)})`, [list, isCut ? hint(which, url) : null], output === null)
}

/** Open where nothing else tells what came of the run. */
const fold = (title, content, isOpen) => el('details', { open: isOpen }, el('summary', {}, title), content)

const hint = (words, url) => el('p', { class: 'hint' }, words, el('a', { href: url }, 'All results'))

const textOf = (value) => (typeof value === 'string' ? value : JSON.stringify(value, null, 2))

const cut = (text) =>
  text.length > MOST_CHARACTERS
    ? `${text.slice(0, MOST_CHARACTERS)}… (${whole.format(text.length)} characters in all)`
    : text
