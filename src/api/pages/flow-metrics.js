import { get } from './api.js'
import { el, section } from './dom.js'
import { durationText } from './flow-time.js'

const percent = new Intl.NumberFormat(undefined, { style: 'percent' })

/** What held a flow run up, and what to do about it. */
export function flowMetrics({ path }) {
  const bottlenecks = el('ul', { class: 'rows', 'aria-label': 'Bottlenecks, longest first' })
  const advice = el('ul', { class: 'advice', 'aria-label': 'Recommendations' })
  const element = section('Metrics and recommendations', null, bottlenecks, advice)
  element.hidden = true
  let shown = ''
  return { element, reload }

  /** Answers the metrics, or null where they are not to be had now: those shown stay. */
  async function reload() {
    const found = await get(`${path}/metrics`).catch(() => null)
    const key = JSON.stringify([found?.bottlenecks, found?.recommendations])
    if (found === null || key === shown) return found
    shown = key
    element.hidden = found.bottlenecks.length + found.recommendations.length === 0
    bottlenecks.replaceChildren(...found.bottlenecks.map(bottleneckRow))
    advice.replaceChildren(...found.recommendations.map((sentence) => el('li', {}, sentence)))
    return found
  }
}

const bottleneckRow = ({ task_id, duration, share, blocks }) =>
  el(
    'li',
    { class: 'entry' },
    el('span', { class: 'name' }, task_id),
    el('span', { class: 'dim' }, `${durationText(duration)} · ${percent.format(share)} of the time`),
    blocks.length > 0
      ? el(
          'span',
          { class: 'dim' },
          blocks.length === 1 ? '1 task comes after it' : `${blocks.length} tasks come after it`,
        )
      : null,
  )
