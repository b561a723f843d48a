import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

type Address = ReturnType<typeof ipaddr.parse>

/** `port: null` means every port. */
type NameRule = { name: string; port: number | null }
type RangeRule = { network: [Address, number]; port: number | null }

export interface AllowList {
  /** A listed name is allowed, whatever it resolves to. */
  hasName(hostname: string, port: number): boolean
  /** A listed address or range is allowed, whatever name led to it. */
  hasAddress(address: string, port: number): boolean
}

/** Entries are `host`, `host:port`, `ip`, `ip:port`, `[ipv6]:port` or a CIDR range. An error names any other. */
export function parseAllow(entries: readonly string[]): AllowList {
  const names: NameRule[] = []
  const ranges: RangeRule[] = []
  for (const entry of entries) {
    const rule = parseEntry(entry.trim())
    if ('name' in rule) names.push(rule)
    else ranges.push(rule)
  }
  return {
    hasName: (hostname, port) =>
      names.some((rule) => rule.name === plainName(hostname) && (rule.port === null || rule.port === port)),
    hasAddress: (text, port) => {
      const address = ipaddr.parse(text)
      return ranges.some((rule) => (rule.port === null || rule.port === port) && isInside(address, rule.network))
    },
  }
}

function parseEntry(entry: string): NameRule | RangeRule {
  if (entry.includes('/')) {
    if (!ipaddr.isValidCIDR(entry)) throw badEntry(entry)
    return { network: ipaddr.parseCIDR(entry), port: null }
  }
  const { host, port } = splitPort(entry)
  if (isIP(host) !== 0) {
    const address = ipaddr.parse(host)
    return { network: [address, address.kind() === 'ipv4' ? 32 : 128], port }
  }
  // Hosts such as "127.1" or "0x7f.1" never occur as names: the URL parser turns them into addresses.
  if (
    !/^[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?\.?$/i.test(host) ||
    URL.parse(`http://${host}`)?.hostname !== plainName(host)
  )
    throw badEntry(entry)
  return { name: plainName(host), port }
}

function splitPort(entry: string): { host: string; port: number | null } {
  if (isIP(entry) !== 0) return { host: entry, port: null }
  const match = /^(?:\[(?<v6>[^\]]+)\]|(?<host>[^:]+))(?::(?<port>\d{1,5}))?$/.exec(entry)
  const host = match?.groups?.v6 ?? match?.groups?.host
  const port = match?.groups?.port === undefined ? null : Number(match.groups.port)
  if (host === undefined || (port !== null && (port < 1 || port > 65_535))) throw badEntry(entry)
  return { host, port }
}

function isInside(address: Address, network: [Address, number]): boolean {
  return address.kind() === network[0].kind() && address.match(network)
}

function plainName(hostname: string): string {
  return hostname.toLowerCase().replace(/\.$/, '')
}

function badEntry(entry: string): Error {
  return new Error(`"${entry}" is not a host, host:port, address, address:port or CIDR range.`)
}
