// All that needs undici. It is loaded at the first request: at a start it would cost 100 ms (measured).
import { Agent } from 'undici'
import { type ConnectorOptions, createConnector } from './connector.ts'
import { type Outgoing, readRequest, send } from './outgoing.ts'
import type { Hop } from './redirects.ts'
import type { EgressPolicy } from './resolve.ts'

export interface SenderOptions extends Omit<ConnectorOptions, 'policy'> {
  headersTimeoutMs: number
  bodyIdleTimeoutMs: number
}

export interface Sender {
  readRequest: typeof readRequest
  send(request: Outgoing, hop: Hop, policy: EgressPolicy): Promise<Response>
  /** Ends requests under way. */
  close(): Promise<void>
}

export function createSender({ headersTimeoutMs, bodyIdleTimeoutMs, ...options }: SenderOptions): Sender {
  const agentFor = (policy: EgressPolicy): Agent =>
    new Agent({
      connect: createConnector({ ...options, policy }),
      headersTimeout: headersTimeoutMs,
      bodyTimeout: bodyIdleTimeoutMs,
      allowH2: false,
    })
  const agents: Record<EgressPolicy, Agent> = { public: agentFor('public'), trusted: agentFor('trusted') }
  return {
    readRequest,
    send: (request, hop, policy) => send(request, hop, agents[policy]),
    async close() {
      await Promise.all([agents.public.destroy(), agents.trusted.destroy()])
    },
  }
}
