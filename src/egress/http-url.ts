import { EgressRefused } from './refused.ts'

/** The URL in its canonical form, in which every spelling of an IPv4 address ("127.1", "0x7f.1") is the dotted one. */
export function parseHttpUrl(input: string | URL): URL {
  const url = URL.parse(String(input))
  if (url === null) throw new EgressRefused('', 'invalid_url')
  if (url.protocol !== 'http:' && url.protocol !== 'https:') throw new EgressRefused(url.hostname, 'scheme')
  if (url.username !== '' || url.password !== '') throw new EgressRefused(url.hostname, 'userinfo')
  return url
}
