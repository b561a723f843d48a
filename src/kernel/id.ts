import { createHash, randomUUID } from 'node:crypto'

/**
 * UUIDv7 (RFC 9562): ordered by time, so that new rows land at the end of their indexes. The random part comes from a
 * v4, which Node makes at a tenth of the cost of 16 random bytes.
 */
export function newId(nowMs = Date.now()): string {
  if (nowMs !== instant.ms) Object.assign(instant, { ms: nowMs, text: textOf(nowMs) })
  return instant.text + randomUUID().slice(15)
}

/** The instant of the last id, kept because many ids are made in one millisecond. */
const instant = { ms: -1, text: '' }

function textOf(nowMs: number): string {
  const high = Math.floor(nowMs / 0x1_0000).toString(16)
  const low = (nowMs % 0x1_0000).toString(16)
  return `${high.padStart(8, '0')}-${low.padStart(4, '0')}-7`
}

/** The same id for the same text in every process (a UUIDv8), so that a row made twice under it exists once. */
export function idFrom(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

export const isId = (text: string): boolean => UUID.test(text)

export const LOWEST_ID = '00000000-0000-0000-0000-000000000000'
