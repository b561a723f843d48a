/** Long work is cut into turns of about this time, between which the process serves others. */
const TURN_MS = 15

/** Returns a promise to await once a turn has lasted long enough; null before that. */
export function createTurns(): () => Promise<void> | null {
  let since = performance.now()
  return () => {
    if (performance.now() - since < TURN_MS) return null
    return new Promise((resolve) => {
      setImmediate(() => {
        since = performance.now()
        resolve()
      })
    })
  }
}
