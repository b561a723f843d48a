const BROWSERS: [string, RegExp][] = [
  ['Edge', /Edg\//],
  ['Opera', /OPR\//],
  ['Firefox', /Firefox\//],
  ['Chrome', /Chrome\//],
  ['Safari', /Safari\//],
]
const SYSTEMS: [string, RegExp][] = [
  ['Android', /Android/],
  ['iPhone', /iPhone/],
  ['iPad', /iPad/],
  ['Windows', /Windows/],
  ['Mac', /Mac OS X/],
  ['Linux', /Linux/],
]

/** Chrome on Linux, as far as a browser tells. */
export function browserOf(userAgent: string | null): string {
  if (userAgent === null || userAgent === '') return 'An unknown program'
  const find = (list: [string, RegExp][]): string | undefined =>
    list.find(([, pattern]) => pattern.test(userAgent))?.[0]
  const browser = find(BROWSERS)
  const system = find(SYSTEMS)
  if (browser === undefined) return userAgent.split(/[ /]/)[0] ?? userAgent
  return system === undefined ? browser : `${browser} on ${system}`
}
