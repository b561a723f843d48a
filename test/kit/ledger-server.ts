// A ledger outside of the servers: it counts the effects of tools, whatever happens to the server that called them.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { z } from 'zod'
import { createGates, type Gates } from './gates.ts'
import { serveLocally } from './local-server.ts'
import type { Cleanup } from './process.ts'

const callShape = z.strictObject({
  tool: z.string(),
  label: z.string(),
  key: z.string().nullable(),
  run: z.string(),
  pid: z.int(),
})
export type LedgerCall = z.infer<typeof callShape>

export interface Ledger extends Gates {
  readonly url: string
  /** Every request, in the order of arrival. */
  readonly calls: readonly LedgerCall[]
  /** The number of effects of the call with this label: one per key, and one for each call without a key. */
  effects(label: string): number
  callsOf(label: string): LedgerCall[]
}

/** A call whose label is held has its effect, and gets its answer when the label is released. */
export async function startLedger(t: Cleanup): Promise<Ledger> {
  const calls: LedgerCall[] = []
  const byLabel = new Map<string, LedgerCall[]>()
  const gates = createGates()

  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const call = callShape.parse(JSON.parse(await text(request)))
    calls.push(call)
    const known = byLabel.get(call.label) ?? []
    byLabel.set(call.label, known)
    known.push(call)
    await gates.pass(call.label, response)
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ done: call.label }))
  }

  const origin = await serveLocally(t, take)
  const callsOf = (label: string): LedgerCall[] => byLabel.get(label) ?? []
  return {
    url: `${origin}/`,
    calls,
    callsOf,
    effects: (label) => {
      const keys = callsOf(label).map((call, index) => call.key ?? index)
      return new Set(keys).size
    },
    ...gates.forTests,
  }
}
