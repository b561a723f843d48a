// "Next try in 40 s (12:03:20)."
import { duration } from './figures.ts'
import { useNow } from './when.tsx'

/** A timer is not read aloud each time it changes. */
export function NextTry({ at }: { at: string }) {
  const left = Date.parse(at) - useNow()
  return (
    <span role="timer" className="number" title={new Date(at).toLocaleString()}>
      {left <= 0 ? 'Retrying now.' : `Next try in ${wholeSeconds(left)} (${clockTime(at)}).`}
    </span>
  )
}

/** The last second counts as one. */
const wholeSeconds = (ms: number): string => {
  const seconds = Math.ceil(ms / 1_000)
  return seconds < 60 ? `${seconds} s` : duration(seconds * 1_000)
}

/** 12:03:20 */
export const clockTime = (at: string): string =>
  new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' }).format(new Date(at))
