import { copyFile, type FileHandle, open, stat, truncate } from 'node:fs/promises'
import { giveToFolderOwner } from './private-file.ts'

// PostgreSQL writes its log straight into a file, not through Muster: the server must go on when Muster is killed.

const limitBytes = 10 * 1024 * 1024

export async function openServerLog(path: string): Promise<FileHandle> {
  const file = await open(path, 'a', 0o600)
  await file.chmod(0o600)
  await giveToFolderOwner(path)
  return file
}

/** Keeps one older part. Meanwhile the server goes on writing, at the end of the emptied file. */
export async function trimServerLog(path: string, limit = limitBytes): Promise<void> {
  if ((await sizeOf(path)) <= limit) return
  await copyFile(path, `${path}.old`)
  await giveToFolderOwner(`${path}.old`)
  await truncate(path, 0)
}

export async function sizeOf(path: string): Promise<number> {
  return (await stat(path).catch(() => null))?.size ?? 0
}

/** The server's last message about its end, among the text after position `from`. */
export async function lastComplaint(path: string, from: number): Promise<string | null> {
  const size = await sizeOf(path)
  const start = Math.max(from, size - 16_384)
  if (size <= start) return null
  const file = await open(path, 'r')
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(size - start), 0, size - start, start)
    const lines = buffer.toString('utf8', 0, bytesRead).split('\n')
    const line = lines.findLast((text) => /(FATAL|PANIC|error): /.test(text)) ?? lines.findLast((text) => text !== '')
    return line?.replace(/^.*?(FATAL|PANIC|error): +/, '').trim() ?? null
  } finally {
    await file.close()
  }
}
