import { get } from './api.js'
import { button, el, failure, showInstant } from './dom.js'
import { flowAlerts } from './flow-alerts.js'
import { addWorkersButton, cancelFlow } from './flow-buttons.js'
import { flowFigures } from './flow-figures.js'
import { flowMetrics } from './flow-metrics.js'
import { createFlowNames, patternText } from './flow-names.js'
import { flowOutcome } from './flow-outcome.js'
import { flowProgress } from './flow-progress.js'
import { flowTasks } from './flow-tasks.js'
import { isActive, isChangeable, statusOf } from './flow-time.js'
import { flowTopology } from './flow-topology.js'
import { followFlow, keepFresh } from './keep-fresh.js'
import { loaded } from './loaded.js'
import { projectAddress } from './projects.js'
import { statusBadge } from './status.js'

const EVERY_MS = 1_000
const MEASURED_EVERY_MS = 2_000

/** One flow run: how far it is, what its tasks do, how well it uses its time. */
export function flowDetail({ project, isMember, id }) {
  const path = `/api/projects/${project.id}/flow-runs/${encodeURIComponent(id)}`
  return el(
    'div',
    { class: 'panel' },
    el('p', { class: 'crumbs' }, el('a', { href: projectAddress(project.id, 'flows') }, '← Flows')),
    loaded(
      () => get(path),
      (run) => flowPage({ project, isMember, path, run }),
      { lines: 8 },
    ),
  )
}

function flowPage({ project, isMember, path, run: first }) {
  const header = flowHeader({ project, isMember, run: first, onChange: () => fresh.poke() })
  const alerts = flowAlerts({ project, isMember, onChange: () => fresh.poke() })
  const figures = flowFigures()
  const progress = flowProgress({ onChoose: (status) => progress.choose(tasks.filter(status)) })
  const tasks = flowTasks({ path, run: first })
  const topology = flowTopology({ path, isMember })
  const metrics = flowMetrics({ path })
  const outcome = flowOutcome({ path })
  const live = el('div', { class: 'panel' })
  const stale = el('div')
  live.append(
    ...[header.element, stale, alerts.element, figures.element, progress.element, tasks.element],
    ...[topology.element, metrics.element, outcome.element, exportLinks(path, first)],
  )
  let run = first
  let events = null
  let isFinal = false
  show([])
  const fresh = keepFresh(live, { work: refresh, everyMs: EVERY_MS, onRest: rest })
  keepFresh(live, { work: measure, everyMs: MEASURED_EVERY_MS, leastMs: MEASURED_EVERY_MS })
  return live

  async function refresh() {
    const wasActive = isActive(run)
    try {
      const [now, { items }] = await Promise.all([
        // A run that has ended stays as it is.
        wasActive ? get(path) : run,
        get(`/api/projects/${project.id}/alerts?acked=false&flow_run_id=${run.id}`),
      ])
      run = now
      show(items)
      stale.replaceChildren()
      if (wasActive && !isActive(run)) {
        isFinal = false
        await tasks.reload()
      }
    } catch (error) {
      error.message = `${error.message} What is shown is old.`
      stale.replaceChildren(failure(error, fresh.poke))
    }
    if (isActive(run)) follow()
    else rest()
    return isActive(run)
  }

  function show(open) {
    header.update(run)
    alerts.update(open, run)
    figures.update(run)
    progress.update(run)
    tasks.update(run)
    topology.update(run)
    outcome.update(run)
  }

  function follow() {
    if (events?.isOpen()) return
    events = followFlow(path, (event) => {
      tasks.apply(event)
      fresh.poke()
    })
  }

  function rest() {
    events?.close()
    events = null
  }

  /** What is computed from the whole journal is asked for less often. */
  async function measure() {
    if (isFinal) return
    isFinal = !isActive(run)
    await Promise.all([metrics.reload().then((found) => found && figures.measure(found)), topology.reload(run)])
  }
}

function flowHeader({ project, isMember, run: first, onChange }) {
  const pattern = el('span', { class: 'badge', title: 'Pattern' }, patternText(first))
  const name = el('h2', { class: 'heading' }, createFlowNames({ project }).nameOf(first))
  const status = el('span', { class: 'flow-status' })
  const buttons = el('span', { class: 'buttons' })
  const said = el('p', { class: 'dim' }, 'started ', showInstant(first.created_at), ' · ', el('code', {}, first.id))
  const problem = el('div')
  let shown = ''
  return {
    element: el(
      'div',
      { class: 'section' },
      el('div', { class: 'title' }, name, pattern, status, buttons),
      said,
      problem,
    ),
    update,
  }

  function update(run) {
    const said = statusOf(run)
    const key = `${said} ${run.workers}`
    if (key === shown) return
    shown = key
    status.replaceChildren(statusBadge(said, said.replaceAll('_', ' ')))
    problem.replaceChildren()
    const can = { project, run, onChange, fail }
    buttons.replaceChildren(
      ...(isMember && isChangeable(run)
        ? [addWorkersButton(can), button('Cancel…', () => cancelFlow(can), { class: 'danger' })]
        : []),
    )
  }

  function fail(error, again) {
    problem.replaceChildren(failure(error, again))
  }
}

const FORMATS = { json: 'JSON', chrome: 'Chrome trace', otlp: 'OTLP', csv: 'CSV' }

const exportLinks = (path, { id }) =>
  el(
    'p',
    { class: 'exports' },
    'Export the trace: ',
    Object.entries(FORMATS).map(([format, words]) =>
      el(
        'a',
        {
          href: `${path}/trace?format=${format}`,
          download: `flow-${id}.${format === 'csv' ? 'csv' : `${format}.json`}`,
        },
        words,
      ),
    ),
  )
