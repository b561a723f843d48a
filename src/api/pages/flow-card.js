import { el, setText, showInstant } from './dom.js'
import { flowAlerts } from './flow-alerts.js'
import { aboutText, patternText } from './flow-names.js'
import { flowProgress } from './flow-progress.js'
import { elapsedText, etaText, isChangeable, statusOf } from './flow-time.js'
import { projectAddress } from './projects.js'
import { statusBadge } from './status.js'

/** A flow run among others. It is made once; from then on only what has changed in it changes. */
export function flowCard({ project, run, names, isMember, onChange }) {
  const pattern = el('span', { class: 'badge', title: 'Pattern' }, patternText(run))
  const link = el('a', { class: 'name', href: projectAddress(project.id, 'flows', run.id) }, names.nameOf(run))
  const status = el('span', { class: 'flow-status' })
  const about = el('span', { class: 'dim about' })
  const [elapsed, eta] = [el('strong', { class: 'value' }), el('strong', { class: 'value' })]
  const expected = el('span', { class: 'time expected' }, 'ETA ', eta)
  const progress = flowProgress()
  const alerts = flowAlerts({ project, isMember, onChange })
  const element = el(
    'li',
    { class: 'flow', 'data-run': run.id },
    el(
      'div',
      { class: 'flow-head' },
      el('span', { class: 'who' }, link, pattern, about),
      status,
      el('span', { class: 'time' }, 'Elapsed ', elapsed),
      expected,
      el('span', { class: 'dim started' }, showInstant(run.created_at)),
    ),
    progress.element,
    alerts.element,
  )
  let shown = ''
  return { element, update }

  function update(now, open) {
    const said = statusOf(now)
    if (shown !== said) {
      shown = said
      element.dataset.status = now.status
      status.replaceChildren(statusBadge(said, said.replaceAll('_', ' ')))
      expected.hidden = !isChangeable(now)
    }
    setText(about, now.flow_id === null ? aboutText(now) : '')
    setText(elapsed, elapsedText(now))
    setText(eta, etaText(now))
    progress.update(now)
    alerts.update(open, now)
  }
}
