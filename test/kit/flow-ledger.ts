// A ledger outside of the servers: functions of flows report the beginning and the end of each call to it.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { z } from 'zod'
import { serveLocally } from './local-server.ts'
import type { Cleanup } from './process.ts'

const wordShape = z.strictObject({
  phase: z.enum(['begin', 'end']),
  name: z.string(),
  key: z.string(),
  pid: z.int(),
})

export interface FlowCall {
  /** The flow run, the leaf, and the call within the leaf, between colons. */
  key: string
  name: string
  pid: number
  /** The instant at which the ledger heard of the call, by performance.now(). */
  at: number
  hasEnded: boolean
}

export interface FlowLedger {
  readonly url: string
  /** The calls in the order in which they began. */
  callsOf(flowRunId: string): readonly FlowCall[]
  /** The number of beginnings and ends that the ledger heard of this flow run. */
  wordsOf(flowRunId: string): number
}

export async function startFlowLedger(t: Cleanup): Promise<FlowLedger> {
  const calls = new Map<string, FlowCall[]>()

  async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { phase, name, key, pid } = wordShape.parse(JSON.parse(await text(request)))
    const flowRunId = key.split(':')[0] ?? ''
    const known = calls.get(flowRunId) ?? []
    calls.set(flowRunId, known)
    const open = known.find((call) => call.key === key && call.pid === pid && !call.hasEnded)
    if (phase === 'begin') known.push({ key, name, pid, at: performance.now(), hasEnded: false })
    else if (open) open.hasEnded = true
    response.end()
  }

  const origin = await serveLocally(t, take)
  const callsOf: FlowLedger['callsOf'] = (flowRunId) => calls.get(flowRunId) ?? []
  return {
    url: `${origin}/`,
    callsOf,
    wordsOf: (flowRunId) => callsOf(flowRunId).reduce((all, { hasEnded }) => all + (hasEnded ? 2 : 1), 0),
  }
}
