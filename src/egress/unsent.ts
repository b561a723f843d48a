// Failures before a request was sent: the name, the connection or its encryption failed, or the request was refused here.
import { EgressRefused } from './refused.ts'

const unsent = new WeakSet<Error>()

/** Called with the error of a connection that was never made. */
export function noteUnsent(error: Error): void {
  unsent.add(error)
}

/** True if the request of this failure cannot have reached its server. */
export function isUnsent(error: unknown): boolean {
  for (let inner = error; inner instanceof Error; inner = inner.cause) {
    if (unsent.has(inner) || inner instanceof EgressRefused || inner.message === BAD_PORT) return true
  }
  return false
}

/** undici says this of a port that fetch must not use, before it connects. */
const BAD_PORT = 'bad port'
