/** The 97.5 % quantile of the normal distribution. */
export const NORMAL_975 = 1.959963984540054

/**
 * The 97.5 % quantile of Student's t: the mean of `degrees` + 1 differences lies within this many standard errors of
 * the true mean in 95 % of all samples.
 */
export function studentT975(degrees: number): number {
  if (!Number.isInteger(degrees) || degrees < 1) throw new Error(`there is no t distribution with ${degrees} degrees`)
  const tail = 0.95
  let low = 1
  let high = 13
  while (high - low > 1e-12 * high) {
    const middle = (low + high) / 2
    if (middle === low || middle === high) break
    if (within(middle, degrees) < tail) low = middle
    else high = middle
  }
  return (low + high) / 2
}

/** The probability that t lies between -t and t: a finite sum (Abramowitz and Stegun, 26.7.3 and 26.7.4). */
export function within(t: number, degrees: number): number {
  const angle = Math.atan(t / Math.sqrt(degrees))
  const cosine = Math.cos(angle)
  const isOdd = degrees % 2 === 1
  let term = isOdd ? cosine : 1
  let sum = degrees === 1 ? 0 : term
  for (let power = isOdd ? 2 : 1; power < degrees - 2; power += 2) {
    term *= (power / (power + 1)) * cosine * cosine
    sum += term
  }
  const part = Math.sin(angle) * sum
  return isOdd ? (2 / Math.PI) * (angle + part) : part
}
