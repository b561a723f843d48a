// How long, and how much longer, in few words that keep their width.
import { serverTime } from './api.js'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const tenths = new Intl.NumberFormat(undefined, { minimumFractionDigits: 1, maximumFractionDigits: 1 })

export function durationText(ms) {
  if (ms < SECOND) return `${Math.max(0, Math.round(ms))} ms`
  if (ms < 10 * SECOND) return `${tenths.format(ms / SECOND)} s`
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)} s`
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min ${Math.floor((ms % MINUTE) / SECOND)} s`
  return `${Math.floor(ms / HOUR)} h ${Math.floor((ms % HOUR) / MINUTE)} min`
}

export const isActive = ({ status }) => status === 'queued' || status === 'running'

/** One that is being cancelled goes on for a while, and nothing can be done about it any more. */
export const isChangeable = (run) => isActive(run) && run.cancel_requested_at === null

/** The status as people are told it. */
export const statusOf = (run) => (isActive(run) && !isChangeable(run) ? 'cancelling' : run.status)

/** What was left out counts as done only where nothing went wrong. */
export const doneOf = (run) => {
  const { completed, failed, skipped } = run.progress
  return isChangeable(run) || run.status === 'completed' ? completed + failed + skipped : completed
}

/** So far, or in all. */
export function elapsedMs({ started_at, completed_at, duration }) {
  if (duration !== null) return duration
  if (started_at === null) return 0
  return (completed_at ? Date.parse(completed_at) : serverTime()) - Date.parse(started_at)
}

/** While it is under way whole seconds are enough, and steadier. */
export function elapsedText(run) {
  if (run.started_at === null) return isActive(run) ? 'not begun' : '–'
  const ms = elapsedMs(run)
  return isActive(run) ? durationText(Math.max(0, ms - (ms % SECOND))).replace(/^0 ms$/, '0 s') : durationText(ms)
}

/** A guess is not told to the second. */
export function etaText(run) {
  if (!isChangeable(run)) return '–'
  if (run.eta === null) return 'not known yet'
  const left = Date.parse(run.eta) - serverTime()
  if (left < 2 * SECOND) return 'any moment'
  if (left < 10 * SECOND) return `about ${Math.round(left / SECOND)} s`
  if (left < 55 * SECOND) return `about ${5 * Math.round(left / SECOND / 5)} s`
  if (left < HOUR) return `about ${Math.max(1, Math.round(left / MINUTE))} min`
  return `about ${Math.round(left / HOUR)} h`
}
