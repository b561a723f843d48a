import { post } from './api.js'
import { announce, button, el, failure, showInstant } from './dom.js'
import { addWorkersButton, cancelFlow } from './flow-buttons.js'
import { isChangeable } from './flow-time.js'
import { projectAddress } from './projects.js'

/** What people were told about a flow run and nobody has acknowledged, with what can be done about it. */
export function flowAlerts({ project, isMember, onChange }) {
  const element = el('div', { class: 'alerts' })
  let shown = ''
  return { element, update }

  function update(alerts, run) {
    const key = JSON.stringify([alerts.map(({ id }) => id), isChangeable(run), run.workers])
    // The element with the focus stays as long as nothing is new.
    if (key === shown) return
    shown = key
    element.replaceChildren(...alerts.map((alert) => alertNote(alert, run)))
  }

  function alertNote(alert, run) {
    const problem = el('div')
    const fail = (error, again) => problem.replaceChildren(failure(error, again))
    const buttons = isMember ? [...(isChangeable(run) ? actionsOf(alert, run, fail) : []), ackButton(alert, fail)] : []
    return el(
      'section',
      { class: 'note wait alert', 'aria-label': 'Alert', 'data-alert': alert.id },
      el(
        'p',
        {},
        el('strong', {}, alert.kind === 'slow' ? 'Slower than expected. ' : `${alert.kind}. `),
        alert.suspected_cause,
        el('span', { class: 'dim' }, ' · ', showInstant(alert.created_at)),
      ),
      problem,
      buttons.length > 0 ? el('div', { class: 'buttons' }, buttons) : null,
    )
  }

  function actionsOf({ actions }, run, fail) {
    const known = {
      cancel: () => button('Cancel the flow…', () => cancelFlow({ project, run, onChange, fail }), { class: 'danger' }),
      add_workers: () => addWorkersButton({ project, run, onChange, fail }),
      switch_topology: () =>
        el('a', { class: 'button', href: projectAddress(project.id, 'flows', run.id) }, 'Switch topology'),
    }
    return actions.flatMap((action) => (Object.hasOwn(known, action) ? [known[action]()] : []))
  }

  function ackButton(alert, fail) {
    const acknowledge = async () => {
      try {
        await post(`/api/projects/${project.id}/alerts/${alert.id}/ack`)
        announce('The alert is acknowledged.')
        onChange()
      } catch (error) {
        fail(error, acknowledge)
      }
    }
    return button('Acknowledge', acknowledge)
  }
}
