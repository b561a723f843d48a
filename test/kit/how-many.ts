// The number of tries of a random test: a few with all tests, far more in `npm run test:long`.

export const isLong = process.env.MUSTER_TEST_LONG === '1'

export const howMany = (usual: number, long: number): number => (isLong ? long : usual)

/**
 * This many consecutive seeds. The first is random, unless MUSTER_TEST_SEED names it; a failing test prints its seed.
 */
export function seeds(count: number): number[] {
  const given = process.env.MUSTER_TEST_SEED
  const first = given === undefined ? Math.floor(Math.random() * 1_000_000_000) : Number(given)
  if (!Number.isSafeInteger(first)) throw new Error(`MUSTER_TEST_SEED is no whole number: ${given}`)
  return Array.from({ length: count }, (_, index) => first + index)
}
