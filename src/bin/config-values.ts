// The kinds of values of settings: the form of each kind, and the error message for other forms.
import ipaddr from 'ipaddr.js'
import { z } from 'zod'
import { parseAllow } from '../egress/allow.ts'
import { type FaultPlan, faultPoints } from '../kernel/fault.ts'

export const wholeNumberField = (minimum: number, maximum: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/, 'must be a whole number')
    .transform(Number)
    .pipe(z.int().min(minimum, `must be at least ${minimum}`).max(maximum, `must be at most ${maximum}`))

/** Ports of other protocols: browsers, and fetch in Node, connect to none of them (fetch.spec.whatwg.org/#bad-port). */
export const refusedPorts: ReadonlySet<number> = new Set([
  1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110,
  111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532,
  540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061,
  6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
])

export const portField = wholeNumberField(1, 65_535).refine(
  (port) => !refusedPorts.has(port),
  'must be another port: browsers refuse to open this one',
)

export const list = z
  .string()
  .transform((text) => text.split(/[\s,]+/).filter((entry) => entry !== 'off' && entry !== ''))
export const httpUrl = z
  .string()
  .refine((text) => /^https?:$/.test(URL.parse(text)?.protocol ?? ''), 'must be an http(s) URL')
/** A user name or a query would be lost when a path is added. */
export const plainUrl = httpUrl.refine((text) => {
  const url = URL.parse(text)
  return !url || `${url.username}${url.password}${url.search}${url.hash}` === ''
}, 'must be an address without user name, query or fragment')
export const onOff = z.enum(['on', 'off'], 'must be on or off')

/** `name=value`, commas between several, the values percent-encoded: the form that OpenTelemetry gives this variable. */
export const headerList = z.string().transform((text, context): Record<string, string> => {
  const headers: Record<string, string> = {}
  for (const entry of text.split(',').filter((each) => each.trim() !== '')) {
    const [, name = '', value = ''] = /^\s*([\w-]+)\s*=\s*([\x21-\x7e]*)\s*$/.exec(entry) ?? []
    const plain = name === '' ? null : decoded(value)
    if (plain === null) context.addIssue({ code: 'custom', message: 'must be name=value, with commas between several' })
    else headers[name.toLowerCase()] = plain
  }
  return headers
})

function decoded(text: string): string | null {
  try {
    const plain = decodeURIComponent(text)
    return /^[\x20-\x7e]*$/.test(plain) ? plain : null
  } catch {
    return null
  }
}

/** `point=kill`, or `point=stop@3` for the third passing; commas separate several. */
export const faults = z.string().transform((text, context): FaultPlan => {
  const plan: Record<string, { action: 'kill' | 'stop'; at: number }> = {}
  for (const entry of text.split(',')) {
    const [, point = '', action, at = '1'] = /^([\w.]+)=(kill|stop)(?:@(\d{1,6}))?$/.exec(entry) ?? []
    if (!faultPoints.some((known) => known === point)) {
      context.addIssue({ code: 'custom', message: `names no fault: ${entry}` })
    }
    plan[point] = { action: action === 'stop' ? 'stop' : 'kill', at: Number(at) }
  }
  return plan
})

/** Takes the same values as Fastify, which would complain only after the database's start, without the name. */
export const isProxy = (entry: string): boolean =>
  ['loopback', 'linklocal', 'uniquelocal'].includes(entry) || ipaddr.isValid(entry) || ipaddr.isValidCIDR(entry)

export function isAllowList(entries: string[]): boolean {
  try {
    parseAllow(entries)
    return true
  } catch {
    return false
  }
}
