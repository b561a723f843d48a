/** USD per million tokens. */
export interface Price {
  input: number
  output: number
}

/** Rounds to a tenth of a micro-dollar: finer digits are the noise of adding fractions. */
export const roundCost = (usd: number): number => Math.round(usd * 1e7) / 1e7

/** Null if the model has no price. */
export function costOf(price: Price | null, inputTokens: number, outputTokens: number): number | null {
  if (!price) return null
  return roundCost((inputTokens * price.input + outputTokens * price.output) / 1_000_000)
}
