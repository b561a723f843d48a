// A key is `mk_` + 256 random bits + a checksum. The prefix lets secret scanners find a leaked key; a made-up key is
// refused without the database.
import { randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'

const SHAPE = /^mk_[A-Za-z0-9_-]{49}$/

export function makeKey(): { key: string; prefix: string } {
  const random = randomBytes(32).toString('base64url')
  const key = `mk_${random}${checksum(random)}`
  return { key, prefix: key.slice(0, 11) }
}

export const isWellFormedKey = (text: string): boolean =>
  SHAPE.test(text) && text.slice(46) === checksum(text.slice(3, 46))

const checksum = (random: string): string => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(crc32(random))
  return bytes.toString('base64url')
}
