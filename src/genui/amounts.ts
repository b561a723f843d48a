const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 })
const fraction = new Intl.NumberFormat('en-US', { maximumFractionDigits: 1 })
const dollars = new Intl.NumberFormat('en-US', { style: 'currency', currency: 'USD', maximumSignificantDigits: 3 })

export const NONE = '–'

export const sayCount = (count: number): string => whole.format(count)

export const sayCounted = (count: number, noun: string): string => `${sayCount(count)} ${noun}${count === 1 ? '' : 's'}`

export const sayCost = (usd: number | null): string => (usd === null ? NONE : dollars.format(usd))

/** A share of 0 to 1. */
export const sayShare = (share: number): string => `${fraction.format(share * 100)} %`

export function sayDuration(ms: number | null): string {
  if (ms === null) return NONE
  if (ms < 1_000) return `${whole.format(ms)} ms`
  if (ms < 60_000) return `${fraction.format(ms / 1_000)} s`
  const seconds = Math.round(ms / 1_000)
  const [hours, minutes] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60]
  return hours > 0 ? `${whole.format(hours)} h ${minutes} min` : `${minutes} min ${seconds % 60} s`
}

/** A difference, with its sign. */
export const saySigned = (amount: number, say: (amount: number) => string): string => {
  const said = say(Math.abs(amount))
  return said === say(0) ? said : `${amount < 0 ? '−' : '+'}${said}`
}
