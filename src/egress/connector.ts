import { buildConnector } from 'undici'
import type { AllowList } from './allow.ts'
import { type EgressPolicy, type Lookup, resolveChecked } from './resolve.ts'
import { noteUnsent } from './unsent.ts'

export interface ConnectorOptions {
  policy: EgressPolicy
  allow: AllowList
  lookup: Lookup
  connectTimeoutMs: number
}

/**
 * A connector for undici's Agent. The checked addresses are handed to the socket as the answer of its own lookup, so a
 * name cannot be public when it is checked and private when it is dialled. undici's `connect.lookup` option alone would
 * not do: sockets skip it for address literals.
 */
export function createConnector(options: ConnectorOptions): buildConnector.connector {
  const { policy, allow, lookup, connectTimeoutMs } = options

  async function connect(request: buildConnector.Options, callback: buildConnector.Callback): Promise<void> {
    const port = Number(request.port) || (request.protocol === 'https:' ? 443 : 80)
    const startedAt = performance.now()
    const target = { hostname: request.hostname, port, policy }
    const addresses = await resolveChecked(target, allow, lookup)
    const dial = buildConnector({
      timeout: Math.max(1, connectTimeoutMs - (performance.now() - startedAt)),
      // undici's header and body time-outs are documented for HTTP/1.1 only.
      allowH2: false,
      lookup: (_hostname, lookupOptions, answer) => {
        const [first] = addresses
        if (lookupOptions.all) answer(null, addresses)
        else answer(null, first?.address ?? '', first?.family ?? 0)
      },
    })
    dial(request, callback)
  }

  return (request, callback) => {
    const told: buildConnector.Callback = (...[error, socket]) => {
      if (error) noteUnsent(error)
      // The pair is passed on as it came: an error, or a socket.
      callback(...([error, socket] as Parameters<buildConnector.Callback>))
    }
    connect(request, told).catch((error: unknown) => {
      told(error instanceof Error ? error : new Error(String(error)), null)
    })
  }
}
