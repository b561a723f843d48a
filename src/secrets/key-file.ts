import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, link, open, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'

export interface SecretFile {
  readonly value: string
  readonly created: boolean
  /** True if others could read the file until now; its mode is 0600 again, but a reader may have the secret. */
  readonly tightened: boolean
}

/**
 * The secret of this installation, made at the first start. Two processes that start at once get the same value, and a
 * crash leaves no file or a whole one: the secret is written to another file, synced, and linked to its name, which
 * fails if the name is taken. Needs a file system with hard links.
 */
export async function readOrCreateSecretFile(path: string, make: () => string): Promise<SecretFile> {
  const existing = await readSecretFile(path)
  if (existing !== null) return { ...existing, created: false }
  const value = make()
  if (value.trim() !== value || value === '') throw new Error(`The secret made for ${path} is empty or has blank ends.`)
  const created = await publish(path, value)
  const stored = await readSecretFile(path)
  if (stored === null) throw new Error(`The secret file ${path} was removed while it was being created.`)
  return { ...stored, created }
}

/** 32 bytes are 43 characters of base64url; the log scrubber of observe/ knows that shape. */
export function randomToken(bytes = 32): string {
  return randomBytes(bytes).toString('base64url')
}

async function readSecretFile(path: string): Promise<{ value: string; tightened: boolean } | null> {
  const file = await openExisting(path)
  if (file === null) return null
  try {
    const stats = await file.stat()
    if (!stats.isFile()) throw new Error(`${path} must be a plain file that holds a secret.`)
    const tightened = (stats.mode & 0o077) !== 0
    if (tightened) await file.chmod(0o600)
    const value = (await file.readFile('utf8')).trim()
    if (value === '') throw new Error(`The secret file ${path} is empty. Restore it, or delete it to have one made.`)
    return { value, tightened }
  } finally {
    await file.close()
  }
}

async function openExisting(path: string): Promise<FileHandle | null> {
  try {
    return await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return null
    throw error
  }
}

/** Returns false when another process was first. */
async function publish(path: string, value: string): Promise<boolean> {
  const aside = `${path}.${randomToken(9)}.tmp`
  const file = await open(aside, 'wx', 0o600)
  try {
    await file.writeFile(`${value}\n`)
    await file.sync()
  } finally {
    await file.close()
  }
  try {
    await link(aside, path)
    await syncFolder(dirname(path))
    return true
  } catch (error) {
    if (isErrno(error, 'EEXIST')) return false
    throw error
  } finally {
    await unlink(aside)
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, constants.O_RDONLY)
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

function isErrno(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
