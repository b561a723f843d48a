/** The largest value that app code returns or receives: a result, an item, an argument. */
export const LARGEST_VALUE_BYTES = 16 * 1_048_576

/** The longest time that a timer and an integer column hold. */
export const LONGEST_MS = 2_147_483_647

/** The most runs of leaves in all flow runs below one: as many as one flow may have leaves. */
export const MOST_RUNS_BELOW = 10_000
