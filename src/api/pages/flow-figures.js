import { el, setText } from './dom.js'
import { doneOf, elapsedText, etaText, isActive } from './flow-time.js'

const factor = new Intl.NumberFormat(undefined, { minimumFractionDigits: 1, maximumFractionDigits: 1 })
const percent = new Intl.NumberFormat(undefined, { style: 'percent' })

/** What one wants to know of a flow run at the first glance. */
export function flowFigures() {
  const boxes = Object.fromEntries(
    ['Elapsed', 'ETA', 'Done', 'Workers busy', 'Parallelism'].map((name) => [name, box(name)]),
  )
  const element = el(
    'dl',
    { class: 'figures' },
    Object.values(boxes).map((each) => each.element),
  )
  return { element, update, measure }

  function update(run) {
    const { total, running } = run.progress
    const done = doneOf(run)
    boxes.Elapsed.show(elapsedText(run))
    boxes.ETA.show(etaText(run))
    boxes.Done.show(total === 0 ? '–' : percent.format(Math.floor((100 * done) / total) / 100), `${done} of ${total}`)
    boxes['Workers busy'].show(isActive(run) ? String(running) : '–', `at most ${run.workers}`)
  }

  function measure({ parallelism_factor, worker_utilization }) {
    boxes.Parallelism.show(
      `${factor.format(parallelism_factor)}×`,
      `workers ${percent.format(worker_utilization)} used`,
    )
  }
}

function box(name) {
  const value = el('strong', { class: 'figure' }, '–')
  const detail = el('span', { class: 'dim detail' })
  return {
    element: el('div', {}, el('dt', {}, name), el('dd', {}, value, ' ', detail)),
    show: (words, more = '') => {
      setText(value, words)
      setText(detail, more)
    },
  }
}
