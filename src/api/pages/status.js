// The one map from a status to its tone and icon: of runs, of entries in a processing log, of tasks.
import { el } from './dom.js'

const SHOWN = {
  queued: { tone: '', icon: '◌' },
  pending: { tone: '', icon: '◌' },
  running: { tone: 'live', icon: '●' },
  processing: { tone: 'live', icon: '●' },
  completed: { tone: 'good', icon: '✓' },
  failed: { tone: 'bad', icon: '✕' },
  rejected: { tone: 'bad', icon: '✕' },
  abandoned: { tone: 'wait', icon: '▲' },
  paused: { tone: 'wait', icon: '○' },
  stale: { tone: 'wait', icon: '▲' },
  cancelled: { tone: '', icon: '■' },
  skipped: { tone: '', icon: '↷' },
  enabled: { tone: 'good', icon: '●' },
  disabled: { tone: '', icon: '○' },
}

export function statusBadge(status, words = status) {
  const { tone, icon } = SHOWN[status] ?? { tone: '', icon: '◌' }
  return el('span', { class: `badge ${tone}` }, el('span', { 'aria-hidden': 'true' }, icon), ` ${words}`)
}
