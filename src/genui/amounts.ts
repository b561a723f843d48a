type Format = (amount: number) => string

/** The first format of a process takes 25 ms to make, so it is made at the first use and not at the start. */
function formatWith(options: Intl.NumberFormatOptions): Format {
  let format: Intl.NumberFormat | undefined
  return (amount) => {
    format ??= new Intl.NumberFormat('en-US', options)
    return format.format(amount)
  }
}

const whole = formatWith({ maximumFractionDigits: 0 })
const fraction = formatWith({ maximumFractionDigits: 1 })
const dollars = formatWith({ style: 'currency', currency: 'USD', maximumSignificantDigits: 3 })

export const NONE = '–'

export const sayCount: Format = whole

export const sayCounted = (count: number, noun: string): string => `${sayCount(count)} ${noun}${count === 1 ? '' : 's'}`

export const sayCost = (usd: number | null): string => (usd === null ? NONE : dollars(usd))

/** A share of 0 to 1. */
export const sayShare = (share: number): string => `${fraction(share * 100)} %`

export function sayDuration(ms: number | null): string {
  if (ms === null) return NONE
  if (ms < 1_000) return `${whole(ms)} ms`
  if (ms < 60_000) return `${fraction(ms / 1_000)} s`
  const seconds = Math.round(ms / 1_000)
  const [hours, minutes] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60]
  return hours > 0 ? `${whole(hours)} h ${minutes} min` : `${minutes} min ${seconds % 60} s`
}

/** A difference, with its sign. */
export const saySigned = (amount: number, say: Format): string => {
  const said = say(Math.abs(amount))
  return said === say(0) ? said : `${amount < 0 ? '−' : '+'}${said}`
}
