const UNITS: readonly (readonly [ms: number, sign: string])[] = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1_000, 's'],
]

/** `3 min`, of the largest unit that fits; below ten seconds with a decimal. */
export function durationText(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`
  if (ms < 9_950) return `${(ms / 1_000).toFixed(1)} s`
  const [unit, sign] = UNITS.find(([each]) => ms >= each) ?? [1_000, 's']
  return `${Math.floor(ms / unit)} ${sign}`
}

/** The time since an instant. A clock that is behind the server's shows none. */
export function ageText(instant: string, nowMs: number): string {
  const ms = Math.max(0, nowMs - Date.parse(instant))
  return ms < 10_000 ? `${Math.floor(ms / 1_000)} s` : durationText(ms)
}

export const tokensText = (count: number): string => `${count.toLocaleString('en')} token${count === 1 ? '' : 's'}`

/** 12:03:20, of the person's own clock. */
export const clockTime = (instant: string): string =>
  new Date(instant).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' })
