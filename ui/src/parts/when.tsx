// "2 min ago", with the full instant on hover. All of them move on together.
import { useSyncExternalStore } from 'react'
import { serverNow } from '../api/client.ts'
import { ago, duration } from './figures.ts'

const EVERY_MS = 1_000
const listeners = new Set<() => void>()
let now = serverNow()
let ticking: ReturnType<typeof setInterval> | undefined

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  // While nobody listened, the time stood still.
  if (ticking === undefined) now = serverNow()
  ticking ??= setInterval(() => {
    now = serverNow()
    for (const each of listeners) each()
  }, EVERY_MS)
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    clearInterval(ticking)
    ticking = undefined
  }
}

/** Now by Muster's clock, once a second. */
export const useNow = (): number => useSyncExternalStore(subscribe, () => now)

export function When({ at }: { at: string | null }) {
  const current = useNow()
  if (at === null) return <span className="dim">–</span>
  return (
    <time dateTime={at} title={new Date(at).toLocaleString()} className="number">
      {ago(at, current)}
    </time>
  )
}

/** "13:05", with the day if it is not today. */
export function Instant({ at }: { at: string }) {
  const date = new Date(at)
  const isToday = date.toDateString() === new Date(useNow()).toDateString()
  return (
    <time dateTime={at} title={date.toLocaleString()} className="number">
      {(isToday ? TIME : DAY_AND_TIME).format(date)}
    </time>
  )
}

const TIME = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' })
const DAY_AND_TIME = new Intl.DateTimeFormat('en-GB', {
  day: 'numeric',
  month: 'short',
  hour: '2-digit',
  minute: '2-digit',
})

/** The duration of ended work, or the time since the start of work under way. */
export function Elapsed({ from, ms }: { from: string | null; ms: number | null }) {
  const current = useNow()
  const shown = ms ?? (from === null ? null : Math.max(0, current - Date.parse(from)))
  return <span className="number">{duration(shown)}</span>
}
