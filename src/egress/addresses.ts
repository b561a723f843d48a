import ipaddr from 'ipaddr.js'

// Everything routable in IPv6 today lies in 2000::/3. ipaddr.js calls an address "unicast" when it is in none of its
// lists, which lets IPv4-compatible ::127.0.0.1 and unassigned space through.
const globalUnicast = ipaddr.IPv6.parseCIDR('2000::/3')
const nat64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96')

// A public number with a private meaning: at this address Azure gives virtual machines their credentials.
const platformAddresses = new Set(['168.63.129.16'])

/** True only for addresses of the public internet; false for unknown or unreadable ones. */
export function isPublicAddress(text: string): boolean {
  if (!ipaddr.isValid(text)) return false
  const address = ipaddr.parse(text)
  if (address.kind() === 'ipv4') return address.range() === 'unicast' && !platformAddresses.has(address.toString())
  // A DNS64 network answers every IPv4-only name inside 64:ff9b::/96, so the IPv4 address within it is judged.
  if (address.match(nat64)) return isPublicAddress(address.toByteArray().slice(12).join('.'))
  return address.match(globalUnicast) && address.range() === 'unicast'
}
