// Checks that the sender knows a secret of the hook: Standard Webhooks, or the secret itself as a bearer token. The
// library standardwebhooks 1.1.1 is not used: it reads the clock of the process, accepts text after the digits of a
// timestamp, decodes the bytes before it hashes them so that other bytes can pass, and needs 11 ms for 1 MiB instead of
// 0.7 (all measured). The tests sign with the library.
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { createSecretCheck } from '../secrets/hash.ts'

const TOLERANCE_S = 5 * 60

export interface Proof {
  /** Any of these secrets proves the sender. */
  secrets: readonly string[]
  now: Date
}

/** `body` has the exact bytes that were sent. If a signature is sent, it decides; otherwise the bearer token does. */
export function verifyDelivery(headers: IncomingHttpHeaders, body: Buffer, { secrets, now }: Proof): boolean {
  const signatures = textOf(headers, 'webhook-signature')
  if (signatures === null) {
    const bearer = /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1]
    return bearer !== undefined && secrets.some((secret) => createSecretCheck(secret)(bearer))
  }
  const id = textOf(headers, 'webhook-id')
  const timestamp = textOf(headers, 'webhook-timestamp')
  if (!id || timestamp === null || !isRecent(timestamp, now)) return false
  const sent = versionOne(signatures)
  return secrets.some((secret) => {
    const expected = sign(secret, `${id}.${timestamp}.`, body)
    return sent.some((signature) => signature.length === expected.length && timingSafeEqual(signature, expected))
  })
}

function textOf(headers: IncomingHttpHeaders, name: string): string | null {
  const value = headers[name]
  return typeof value === 'string' ? value : null
}

/** The timestamp is whole seconds in plain digits, as the standard demands. */
function isRecent(timestamp: string, now: Date): boolean {
  if (!/^\d{1,12}$/.test(timestamp)) return false
  return Math.abs(Math.floor(now.getTime() / 1_000) - Number(timestamp)) <= TOLERANCE_S
}

/** During a rotation a sender signs with both secrets. Signatures of other versions use other algorithms. */
const versionOne = (signatures: string): Buffer[] =>
  signatures
    .split(' ')
    .filter((each) => each.startsWith('v1,'))
    .map((each) => Buffer.from(each.slice('v1,'.length)))

function sign(secret: string, prefix: string, body: Buffer): Buffer {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
  return Buffer.from(createHmac('sha256', key).update(prefix).update(body).digest('base64'))
}
