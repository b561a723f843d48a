// Finds a secret in text, also if the secret was encoded, escaped or cut.
const SHORTEST_PART = 16

/** The forms in which the text contains the secret; a test expects none. */
export function leaksOf(secret: string, text: string): string[] {
  return Object.entries(formsOf(secret))
    .filter(([, needles]) => needles.some((needle) => text.includes(needle)))
    .map(([form]) => form)
}

function formsOf(secret: string): Record<string, string[]> {
  if (secret.length < SHORTEST_PART) throw new Error('a secret this short would be found everywhere')
  const hex = Buffer.from(secret).toString('hex')
  const base64 = shifted(secret)
  return {
    clear: [secret],
    // The end of a secret that was cut; the beginning is no leak, because the beginning of a key is shown on purpose.
    'its end': [secret.slice(-SHORTEST_PART)],
    escaped: [JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)],
    hex: [hex, hex.toUpperCase()],
    base64: [...base64, ...base64.map((text) => text.replaceAll('+', '-').replaceAll('/', '_'))],
  }
}

/**
 * The base64 form of a text depends on its offset in the bytes. There are three forms, each without shared characters.
 */
function shifted(secret: string): string[] {
  return [0, 1, 2].map((offset) => {
    const text = Buffer.from('\0'.repeat(offset) + secret).toString('base64')
    const firstOwn = Math.ceil((offset * 8) / 6)
    const lastOwn = Math.floor(((offset + Buffer.byteLength(secret)) * 8) / 6)
    return text.slice(firstOwn, lastOwn)
  })
}
