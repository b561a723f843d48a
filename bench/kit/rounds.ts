/** Calls `one` `count` times, at most `inFlight` at once. Returns the seconds that all calls took together. */
export async function timeInFlight(
  count: number,
  inFlight: number,
  one: (index: number) => Promise<unknown>,
): Promise<number> {
  let next = 0
  const began = performance.now()
  const worker = async (): Promise<void> => {
    for (let index = next++; index < count; index = next++) await one(index)
  }
  await Promise.all(Array.from({ length: Math.min(inFlight, count) }, worker))
  return (performance.now() - began) / 1_000
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}
