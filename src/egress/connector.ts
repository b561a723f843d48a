import { lookup as dnsLookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { buildConnector, errors } from 'undici'
import { isPublicAddress } from './addresses.ts'
import type { AllowList } from './allow.ts'
import { EgressRefused } from './refused.ts'

/** public: named by a project or a model. trusted: set by the instance admin, so the address may be private. */
export type EgressPolicy = 'public' | 'trusted'

export type ResolvedAddress = { readonly address: string; readonly family: number }
export type Lookup = (hostname: string) => Promise<readonly ResolvedAddress[]>

export const systemLookup: Lookup = (hostname) => dnsLookup(hostname, { all: true, order: 'verbatim' })

/** getaddrinfo cannot be cancelled; a name server that does not answer must not hold a request for ever. */
export function boundLookup(lookup: Lookup, timeoutMs: number): Lookup {
  return (hostname) =>
    new Promise((resolve, reject) => {
      const expire = (): void => {
        reject(new errors.ConnectTimeoutError(`Resolving "${hostname}" took longer than ${timeoutMs} ms.`))
      }
      const timer = setTimeout(expire, timeoutMs)
      lookup(hostname)
        .then(resolve, reject)
        .finally(() => clearTimeout(timer))
    })
}

type Target = { readonly hostname: string; readonly port: number; readonly policy: EgressPolicy }

/** Throws EgressRefused unless every address of the host may be reached; one private answer refuses them all. */
export async function resolveChecked(target: Target, allow: AllowList, lookup: Lookup): Promise<ResolvedAddress[]> {
  const { hostname, port, policy } = target
  const family = isIP(hostname)
  const addresses = family === 0 ? [...(await lookup(hostname))] : [{ address: hostname, family }]
  if (addresses.length === 0) throw new Error(`The name "${hostname}" has no address.`)
  if (policy === 'trusted' || allow.hasName(hostname, port)) return addresses
  for (const { address } of addresses) {
    if (!isPublicAddress(address) && !allow.hasAddress(address, port)) {
      throw new EgressRefused(hostname, 'private_address')
    }
  }
  return addresses
}

/**
 * A connector for undici's Agent. The checked addresses are handed to the socket as the answer of its own lookup, so a
 * name cannot be public when it is checked and private when it is dialled. undici's `connect.lookup` option alone would
 * not do: sockets skip it for address literals.
 */
export function createConnector(options: {
  policy: EgressPolicy
  allow: AllowList
  lookup: Lookup
  connectTimeoutMs: number
}): buildConnector.connector {
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
    connect(request, callback).catch((error: unknown) => {
      callback(error instanceof Error ? error : new Error(String(error)), null)
    })
  }
}
