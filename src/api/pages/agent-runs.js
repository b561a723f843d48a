import { button, el, section, shortId, showInstant } from './dom.js'
import { pagedList } from './list.js'
import { statusBadge } from './status.js'

const TEXT_SHOWN = 400
const whole = new Intl.NumberFormat()
const seconds = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 })
const dollars = new Intl.NumberFormat(undefined, { style: 'currency', currency: 'USD', maximumFractionDigits: 4 })

/** The latest runs of one agent. */
export function agentRuns({ project, agent }) {
  const list = pagedList({
    label: 'Runs, newest first',
    path: `/api/projects/${project.id}/runs`,
    filter: () => ({ agent_id: agent.id }),
    limit: 10,
    empty: 'It has not run yet.',
    row: runRow,
  })
  return section('Latest runs', button('Refresh', list.reload, { 'aria-label': 'Refresh the runs' }), list.element)
}

function runRow(run) {
  const words = run.pause_reason ? `${run.status}: ${run.pause_reason.replaceAll('_', ' ')}` : run.status
  const text = run.error_message ?? run.summary ?? ''
  return el(
    'li',
    { class: 'entry' },
    statusBadge(run.status, words),
    el('span', {}, run.trigger.type),
    el('span', { class: 'dim' }, showInstant(run.created_at)),
    el('span', { class: 'dim' }, figures(run)),
    el('span', { class: 'dim' }, shortId(run.id)),
    text
      ? el('p', { class: 'wide prose dim' }, text.length > TEXT_SHOWN ? `${text.slice(0, TEXT_SHOWN)}…` : text)
      : null,
  )
}

function figures({ duration, step_count, usage }) {
  const parts = [
    `${whole.format(step_count)} ${step_count === 1 ? 'step' : 'steps'}`,
    `${usage.estimated ? 'about ' : ''}${whole.format(usage.total_tokens)} tokens`,
    duration === null ? null : durationText(duration),
    usage.cost_usd === null ? null : dollars.format(usage.cost_usd),
  ]
  return parts.filter((part) => part !== null).join(' · ')
}

const durationText = (ms) => (ms < 1_000 ? `${ms} ms` : `${seconds.format(ms / 1_000)} s`)
