// Which addresses a request may reach.
import { lookup as dnsLookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { isPublicAddress } from './addresses.ts'
import type { AllowList } from './allow.ts'
import { EgressRefused } from './refused.ts'

/** public: named by a project or a model. trusted: set by the instance admin, so the address may be private. */
export type EgressPolicy = 'public' | 'trusted'

export type ResolvedAddress = { readonly address: string; readonly family: number }
export type Lookup = (hostname: string) => Promise<readonly ResolvedAddress[]>

export const systemLookup: Lookup = (hostname) => dnsLookup(hostname, { all: true, order: 'verbatim' })

/**
 * getaddrinfo cannot be cancelled; a name server that does not answer must not hold a request for ever. The error is
 * called like the one that undici gives.
 */
export function boundLookup(lookup: Lookup, timeoutMs: number): Lookup {
  return (hostname) =>
    new Promise((resolve, reject) => {
      const expire = (): void => {
        const message = `Resolving "${hostname}" took longer than ${timeoutMs} ms.`
        reject(Object.assign(new Error(message), { name: 'ConnectTimeoutError', code: 'UND_ERR_CONNECT_TIMEOUT' }))
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
