// The state of this Muster in the bar, asked for every five seconds while the page is in sight.
import { announce, clockTime, el } from './dom.js'

const EVERY_MS = 5_000
const PATIENCE_MS = 4_000

/** `onReady` is called when it is ready again after it was not. */
export function watchReadiness({ state, stale, onReady }) {
  let shown = ''
  let answeredAt = null
  let wasReady = true

  async function look() {
    if (document.visibilityState === 'hidden') return
    const found = await ask()
    if (found.kind !== 'silent') answeredAt = new Date()
    show(found)
    showStale(found)
    const isReady = found.kind === 'ready'
    if (isReady && !wasReady) onReady()
    wasReady = isReady
  }

  function show({ kind, word, missing }) {
    const key = `${kind} ${missing}`
    if (key === shown) return
    if (shown !== '') announce(missing ? `${word}: ${missing}` : word)
    shown = key
    state.className = `state ${kind}`
    state.replaceChildren(el('span', { class: 'dot', 'aria-hidden': 'true' }), missing ? `${word}: ${missing}` : word)
  }

  function showStale({ kind }) {
    stale.hidden = kind !== 'silent'
    const since = answeredAt ? ` since ${clockTime(answeredAt)}` : ''
    const sentence = `Muster does not answer${since}. What is shown may be old.`
    if (kind === 'silent' && stale.textContent !== sentence) stale.textContent = sentence
  }

  look()
  setInterval(look, EVERY_MS)
  document.addEventListener('visibilitychange', look)
}

async function ask() {
  try {
    const answer = await fetch('/readyz', { cache: 'no-store', signal: AbortSignal.timeout(PATIENCE_MS) })
    if (answer.ok) return { kind: 'ready', word: 'Ready', missing: '' }
    const body = await answer.json().catch(() => null)
    const missing = String(body?.error?.message ?? `it answered ${answer.status}`).replace(/^Not ready: |\.$/g, '')
    return { kind: 'unready', word: 'Not ready', missing }
  } catch {
    return { kind: 'silent', word: 'No answer', missing: '' }
  }
}
