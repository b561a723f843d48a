// Gates at which a server of the tests waits until a test lets it go on.
import type { ServerResponse } from 'node:http'

export interface Gates {
  /** Makes each request under this name wait from now on. */
  hold(name: string): void
  release(name: string): void
  /** The number of requests that wait under this name now. A request whose connection is gone does not count. */
  held(name: string): number
}

export interface GateKeeper {
  forTests: Gates
  /** Resolves when the gate is open or the connection is gone. */
  pass(name: string, response: ServerResponse): Promise<void>
}

export function createGates(): GateKeeper {
  const gates = new Map<string, Set<() => void>>()
  return {
    forTests: {
      hold: (name) => void gates.set(name, gates.get(name) ?? new Set()),
      release: (name) => {
        const waiting = gates.get(name) ?? []
        gates.delete(name)
        for (const open of waiting) open()
      },
      held: (name) => gates.get(name)?.size ?? 0,
    },
    pass: (name, response) => {
      const gate = gates.get(name)
      if (!gate || response.destroyed) return Promise.resolve()
      return new Promise((resolve) => {
        const open = (): void => {
          gate.delete(open)
          resolve()
        }
        gate.add(open)
        response.once('close', open)
      })
    },
  }
}
