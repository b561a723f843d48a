import { type Argon2Parameters, argon2, hash as digest, randomBytes, timingSafeEqual } from 'node:crypto'
import { unavailable } from '../kernel/errors.ts'

/** For secrets of 128 random bits and more: keys, tokens. Passwords need `hashPassword`. */
export function sha256(text: string): Buffer {
  return digest('sha256', text, 'buffer')
}

/** The check compares a text with the secret. Its time reveals neither the place of a difference nor the lengths. */
export function createSecretCheck(secret: string): (text: string) => boolean {
  const expected = sha256(secret)
  return (text) => timingSafeEqual(sha256(text), expected)
}

/** Returns a PHC string. The caller checks lengths; Unicode forms that look alike hash alike (NFKC). */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(saltBytes)
  const hash = await derive(password, { nonce: salt, ...cost, tagLength: hashBytes })
  return `$argon2id$v=19$m=${cost.memory},t=${cost.passes},p=${cost.parallelism}$${base64(salt)}$${base64(hash)}`
}

/** False for a wrong password and for a stored value that is no argon2id hash of Muster. */
export async function verifyPassword(password: string, stored: string): Promise<boolean> {
  const parsed = parsePhc(stored)
  if (parsed === null) {
    await spendPasswordTime(password)
    return false
  }
  const { hash, ...parameters } = parsed
  return timingSafeEqual(await derive(password, { ...parameters, tagLength: hash.length }), hash)
}

/** Does the work of a verification for an unknown address, so that the time of the answer reveals nothing. */
export async function spendPasswordTime(password: string): Promise<void> {
  await derive(password, { nonce: Buffer.alloc(saltBytes), ...cost, tagLength: hashBytes })
}

// OWASP's first recommendation: 19 MiB, two passes, one lane; about 50 ms here.
const cost = { memory: 19_456, passes: 2, parallelism: 1 } as const
const saltBytes = 16
const hashBytes = 32

// Hashes share libuv's four threads, which belong to the process, with the file system and DNS; each takes 19 MiB.
const concurrencyLimit = 2
const queueLimit = 100
let running = 0
const waiting: (() => void)[] = []

async function derive(password: string, parameters: Omit<Argon2Parameters, 'message'>): Promise<Buffer> {
  await takeTurn()
  try {
    return await new Promise((resolve, reject) => {
      argon2('argon2id', { message: password.normalize('NFKC'), ...parameters }, (error, hash) => {
        if (error) reject(error)
        else resolve(hash)
      })
    })
  } finally {
    const next = waiting.shift()
    if (next) next()
    else running -= 1
  }
}

/** A finished hash hands its turn to the one that has waited longest: `running` changes only at the ends of a burst. */
async function takeTurn(): Promise<void> {
  if (running < concurrencyLimit) {
    running += 1
    return
  }
  if (waiting.length >= queueLimit) throw unavailable('Too many people sign in at once. Try again in a moment.')
  await new Promise<void>((resolve) => waiting.push(resolve))
}

const phc = /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/]{11,88})\$([A-Za-z0-9+/]{22,88})$/

type ParsedPhc = Omit<Argon2Parameters, 'message' | 'tagLength'> & { hash: Buffer }

/** Also null for an absurd cost: an altered row must not be able to stall the process. */
function parsePhc(stored: string): ParsedPhc | null {
  const match = phc.exec(stored)
  if (match === null) return null
  const [memory, passes, parallelism] = match.slice(1, 4).map(Number)
  if (memory === undefined || passes === undefined || parallelism === undefined) return null
  if (memory > 262_144 || memory < 8 * parallelism || passes < 1 || passes > 10 || parallelism < 1 || parallelism > 8) {
    return null
  }
  return {
    memory,
    passes,
    parallelism,
    nonce: Buffer.from(match[4] ?? '', 'base64'),
    hash: Buffer.from(match[5] ?? '', 'base64'),
  }
}

function base64(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('=', '')
}
