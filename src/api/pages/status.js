// The one map from a status to its tone and icon: of runs, flow runs, entries in a processing log, tasks, agents.
import { el } from './dom.js'

const SHOWN = {
  queued: { tone: '', icon: '◌' },
  pending: { tone: '', icon: '◌' },
  running: { tone: 'live', icon: '●' },
  processing: { tone: 'live', icon: '●' },
  'in-progress': { tone: 'live', icon: '●' },
  blocked: { tone: 'bad', icon: '▲' },
  stuck: { tone: 'bad', icon: '▲' },
  bored: { tone: '', icon: '○' },
  completed: { tone: 'good', icon: '✓' },
  partial: { tone: 'wait', icon: '◐' },
  failed: { tone: 'bad', icon: '✕' },
  timed_out: { tone: 'bad', icon: '✕' },
  rejected: { tone: 'bad', icon: '✕' },
  abandoned: { tone: 'wait', icon: '▲' },
  paused: { tone: 'wait', icon: '○' },
  stale: { tone: 'wait', icon: '▲' },
  cancelling: { tone: 'wait', icon: '■' },
  cancelled: { tone: '', icon: '■' },
  skipped: { tone: '', icon: '↷' },
  enabled: { tone: 'good', icon: '●' },
  disabled: { tone: '', icon: '○' },
}

const UNKNOWN = { tone: '', icon: '◌' }

export const statusIcon = (status) => (SHOWN[status] ?? UNKNOWN).icon

export function statusBadge(status, words = status) {
  const { tone, icon } = SHOWN[status] ?? UNKNOWN
  return el('span', { class: `badge ${tone}` }, el('span', { 'aria-hidden': 'true' }, icon), ` ${words}`)
}
