import { el } from './dom.js'
import { doneOf } from './flow-time.js'
import { statusIcon } from './status.js'

export const TASK_STATUSES = ['completed', 'running', 'failed', 'skipped', 'pending']
const whole = new Intl.NumberFormat()

/**
 * How far a flow run is: a bar, and the numbers it is made of. Nothing moves when they change. With `onChoose` each number
 * is a button that chooses its status.
 */
export function flowProgress({ onChoose } = {}) {
  const parts = TASK_STATUSES.map((status) => el('span', { class: `part ${status}` }))
  const bar = el('div', { class: 'progress', role: 'progressbar', 'aria-label': 'Progress', 'aria-valuemin': 0 }, parts)
  const counts = TASK_STATUSES.map((status) => count(status, onChoose))
  const items = el('span', { class: 'dim items', hidden: true })
  const element = el('div', { class: 'flow-progress' }, bar, el('div', { class: 'breakdown' }, counts, items))
  return { element, update, choose }

  function update(run) {
    const { progress } = run
    for (const [place, status] of TASK_STATUSES.entries()) {
      parts[place].style.flexGrow = String(progress[status])
      const { lastChild } = counts[place]
      const words = whole.format(progress[status])
      if (lastChild.textContent !== words) lastChild.textContent = words
      counts[place].classList.toggle('none', progress[status] === 0)
    }
    const done = doneOf(run)
    bar.setAttribute('aria-valuemax', String(progress.total))
    bar.setAttribute('aria-valuenow', String(done))
    bar.setAttribute('aria-valuetext', `${done} of ${progress.total} tasks are done`)
    items.hidden = progress.items === undefined
    if (progress.items) items.textContent = itemsText(progress.items)
  }

  function choose(status) {
    for (const [place, each] of TASK_STATUSES.entries()) {
      counts[place].setAttribute('aria-pressed', String(each === status))
    }
  }
}

function count(status, onChoose) {
  const content = [
    el('span', { class: 'icon', 'aria-hidden': 'true' }, statusIcon(status)),
    el('span', {}, status),
    el('strong', { class: 'value' }, '0'),
  ]
  const attributes = { class: `count ${status}`, 'data-count': status }
  if (!onChoose) return el('span', attributes, content)
  const press = () => onChoose(status)
  return el('button', { ...attributes, type: 'button', 'aria-pressed': 'false', on: { click: press } }, content)
}

function itemsText({ total, completed, failed, skipped }) {
  const rest = [
    failed > 0 ? `${whole.format(failed)} failed` : null,
    skipped > 0 ? `${whole.format(skipped)} skipped` : null,
  ]
  return [
    'items: ',
    `${whole.format(completed)} of ${whole.format(total)}`,
    ...rest.filter(Boolean).map((each) => `, ${each}`),
  ].join('')
}
