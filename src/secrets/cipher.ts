// Secrets at rest: AES-256-GCM under a key derived from MUSTER_SECRET_KEY. A sealed value is bound to its owner and its
// name, so a row copied elsewhere does not open. Layout: version (1 byte), key id (8), nonce (12), ciphertext, tag
// (16). Nonces are random: one key is good for 2^32 values.

import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto'

/** The owner and the name of a sealed value; the value opens only with the same pair. */
export type SecretContext = { readonly owner: string; readonly name: string }

export interface Cipher {
  /** Hexadecimal; part of every value sealed with this key. */
  readonly keyId: string
  /** Hexadecimal, stored once per database: a start whose fingerprint differs has another key and is refused. */
  fingerprint(): string
  seal(plain: string | Buffer, context: SecretContext): Buffer
  /** Throws SecretUnreadable. */
  open(sealed: Uint8Array, context: SecretContext): Buffer
}

export type UnreadableReason = 'format' | 'unknown_key' | 'altered'

const sentences: Record<UnreadableReason, string> = {
  format: 'it is not a sealed value',
  unknown_key: 'it was sealed with another MUSTER_SECRET_KEY',
  altered: 'it was altered, or belongs to another owner or name',
}

/** The error never holds the value, the key or the context. */
export class SecretUnreadable extends Error {
  readonly reason: UnreadableReason

  constructor(reason: UnreadableReason) {
    super(`The stored secret cannot be read: ${sentences[reason]}.`)
    this.name = 'SecretUnreadable'
    this.reason = reason
  }
}

const version = 1
const keyIdBytes = 8
const nonceBytes = 12
const tagBytes = 16
const headerBytes = 1 + keyIdBytes
const overheadBytes = headerBytes + nonceBytes + tagBytes

type Key = { readonly id: Buffer; readonly secret: Buffer; readonly fingerprint: string }

/** Opens values that the current or any previous key sealed; seals with the current key. */
export function createCipher(secretKey: string, previous: readonly string[] = []): Cipher {
  const current = deriveKey(secretKey)
  const keys = [current, ...previous.map(deriveKey)]

  return {
    keyId: current.id.toString('hex'),
    fingerprint: () => current.fingerprint,

    seal(plain, context) {
      const nonce = randomBytes(nonceBytes)
      const cipher = createCipheriv('aes-256-gcm', current.secret, nonce, { authTagLength: tagBytes })
      cipher.setAAD(associatedData(current.id, context))
      const text = Buffer.concat([
        cipher.update(typeof plain === 'string' ? Buffer.from(plain) : plain),
        cipher.final(),
      ])
      return Buffer.concat([Buffer.from([version]), current.id, nonce, text, cipher.getAuthTag()])
    },

    open(sealed, context) {
      const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength)
      if (bytes.length < overheadBytes || bytes[0] !== version) throw new SecretUnreadable('format')
      const key = keys.find((candidate) => candidate.id.equals(bytes.subarray(1, headerBytes)))
      if (key === undefined) throw new SecretUnreadable('unknown_key')
      const nonce = bytes.subarray(headerBytes, headerBytes + nonceBytes)
      const decipher = createDecipheriv('aes-256-gcm', key.secret, nonce, { authTagLength: tagBytes })
      decipher.setAAD(associatedData(key.id, context))
      decipher.setAuthTag(bytes.subarray(-tagBytes))
      try {
        return Buffer.concat([decipher.update(bytes.subarray(headerBytes + nonceBytes, -tagBytes)), decipher.final()])
      } catch {
        throw new SecretUnreadable('altered')
      }
    },
  }
}

// HKDF spreads the strength of the key and adds none: a short MUSTER_SECRET_KEY stays a weak one.
function deriveKey(secretKey: string): Key {
  if (secretKey === '') throw new Error('The secret key is empty.')
  const derive = (purpose: string): Buffer =>
    Buffer.from(hkdfSync('sha256', secretKey, '', `muster secrets v1 ${purpose}`, 32))
  const secret = derive('encryption')
  const id = createHash('sha256').update('muster key id').update(secret).digest().subarray(0, keyIdBytes)
  return { id, secret, fingerprint: derive('fingerprint').toString('hex') }
}

/** Every part is preceded by its length: ("ab", "c") and ("a", "bc") must give different bytes. */
function associatedData(keyId: Buffer, context: SecretContext): Buffer {
  const parts = [Buffer.from([version]), keyId, Buffer.from(context.owner), Buffer.from(context.name)]
  return Buffer.concat(
    parts.flatMap((part) => {
      const length = Buffer.alloc(4)
      length.writeUInt32BE(part.length)
      return [length, part]
    }),
  )
}
