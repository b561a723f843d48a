// Finds secrets in logs and traces by the name of a field, by the shape of a value, and by registered values.

import { toPlain } from './plain.ts'
import { mask, maskShapes } from './secret-shapes.ts'

export interface Redactor {
  /** Masks this exact value from now on. Returns false for fewer than 8 characters, which could be an ordinary word. */
  registerSecret(value: string): boolean
  /** The text without registered secrets and without words that look like one. */
  scrub(text: string): string
  /** A copy as plain data: secret fields masked, every string scrubbed, errors with their causes. Never throws. */
  clean(value: unknown): unknown
}

const shortestSecret = 8

export function createRedactor(): Redactor {
  // The longest come first: a secret that begins with another one must not leave its tail behind.
  let secrets: readonly string[] = []

  function scrub(text: string): string {
    let clean = text
    for (const secret of secrets) if (clean.includes(secret)) clean = clean.replaceAll(secret, mask)
    return maskShapes(clean)
  }

  function redact(value: unknown): unknown {
    if (typeof value === 'string') return scrub(value)
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) return value.map((item, index) => (followsSecretName(value, index) ? mask : redact(item)))
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [
        scrub(name),
        isSecretName(name) && hidesSomething(item) ? mask : redact(item),
      ]),
    )
  }

  return {
    registerSecret(value) {
      if (value.length < shortestSecret) return false
      const forms = [value, encodeURIComponent(value), JSON.stringify(value).slice(1, -1)]
      secrets = [...new Set([...secrets, ...forms])].sort((a, b) => b.length - a.length)
      return true
    },
    scrub,
    clean: (value) => redact(toPlain(value)),
  }
}

const exactNames = new Set(['auth', 'key', 'pwd', 'credentials', 'databaseurl', 'connectionstring', 'dsn'])
const nameEndings = /(?:password|passwd|passphrase|secret|token|apikey|secretkey|privatekey|authorization|cookie)$/

export function isSecretName(name: string): boolean {
  const plain = name.toLowerCase().replace(/[^a-z0-9]/g, '')
  return exactNames.has(plain) || nameEndings.test(plain)
}

/** Empty values are shown, because a missing token is worth reading. */
function hidesSomething(value: unknown): boolean {
  return value !== null && value !== undefined && value !== '' && typeof value !== 'boolean'
}

/** Raw headers are lists of names and values: ['accept', '*', 'authorization', 'x']. */
function followsSecretName(list: readonly unknown[], index: number): boolean {
  const before = list[index - 1]
  return typeof before === 'string' && before.length < 40 && isSecretName(before)
}
