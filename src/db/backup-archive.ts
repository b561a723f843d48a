// The .tar.gz itself, written and read as a stream: memory holds one part at a time, whatever the size.
import { createHash, randomBytes } from 'node:crypto'
import { type FileHandle, link, lstat, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import { extract, pack } from 'tar-stream'
import type { ArchiveMember } from './backup-manifest.ts'
import { isCode, syncFolder } from './embedded/private-file.ts'

export interface ArchiveWriter {
  add(name: string, body: Buffer): Promise<ArchiveMember>
  /** Gives the file its name once the file is whole and on the disk. Returns the size of the file. */
  publish(): Promise<number>
  /** Removes the unfinished file. Does nothing after `publish`. */
  discard(): Promise<void>
}

const DRAFT = /^\.muster-backup-[0-9a-f]{16}\.partial$/
const ABANDONED_AFTER_MS = 60 * 60_000
const READ_BYTES = 256 * 1024

export async function createArchive(file: string): Promise<ArchiveWriter> {
  if (await lstat(file).catch(() => null)) throw alreadyThere(file)
  const folder = dirname(file)
  await removeAbandonedDrafts(folder)
  const draft = join(folder, `.muster-backup-${randomBytes(8).toString('hex')}.partial`)
  const handle = await openDraft(draft, file)
  const tar = pack()
  const written = pipeline(tar, createGzip(), (compressed) => handle.writeFile(compressed)).catch((error: unknown) => {
    throw cannotWrite(file, error)
  })
  // `add` and `publish` report the failure; until then the rejection must not count as unhandled.
  written.catch(() => {})
  const createdAt = new Date()
  let isOpen = true

  return {
    async add(name, body) {
      const added = new Promise<void>((resolve, reject) => {
        const header = { name, size: body.length, mode: 0o600, mtime: createdAt }
        const entry = tar.entry(header, body, (error) => (error ? reject(error) : resolve()))
        // The callback has reported the error already; without a listener the event would end the process.
        entry.on('error', () => {})
      })
      // An entry fails with its archive, and the archive's error names the cause.
      await Promise.race([added.catch(() => written), written])
      return { name, size: body.length, sha256: createHash('sha256').update(body).digest('hex') }
    },
    async publish() {
      tar.finalize()
      await written
      await handle.sync()
      const { size } = await handle.stat()
      await giveName(draft, file)
      await handle.close()
      isOpen = false
      await syncFolder(folder)
      return size
    },
    async discard() {
      if (!isOpen) return
      isOpen = false
      tar.destroy()
      await written.catch(() => {})
      await handle.close().catch(() => {})
      await rm(draft, { force: true })
    },
  }
}

/**
 * The members in order; each body must be read before the next is asked for. Throws the decoders' errors, and an error
 * if the file goes on after its archive.
 */
export async function* readArchive(handle: FileHandle): AsyncGenerator<{ name: string; body: AsyncIterable<Buffer> }> {
  const gunzip = createGunzip()
  const tar = extract()
  const flow = pipeline(readFromStart(handle), gunzip, tar)
  flow.catch(() => {})
  for await (const entry of tar) {
    if (entry.header.type !== 'file') throw new Error(`${entry.header.name} is no plain file`)
    // Gunzip gives buffers; the types of streamx do not say so.
    yield { name: entry.header.name, body: entry as AsyncIterable<Buffer> }
  }
  await flow
  if (gunzip.bytesWritten !== (await handle.stat()).size) throw new Error('there is something after the archive')
}

/** Used instead of a file stream: a failed pipeline destroys a stream, which would close the opener's descriptor. */
async function* readFromStart(handle: FileHandle): AsyncGenerator<Buffer> {
  for (let position = 0; ; ) {
    const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(READ_BYTES), 0, READ_BYTES, position)
    if (bytesRead === 0) return
    position += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}

async function openDraft(draft: string, file: string): Promise<FileHandle> {
  try {
    const handle = await open(draft, 'wx', 0o600)
    await handle.chmod(0o600)
    return handle
  } catch (error) {
    if (isCode(error, 'ENOENT', 'ENOTDIR')) throw cannotWrite(file, new Error(`there is no folder ${dirname(file)}`))
    throw cannotWrite(file, error)
  }
}

/** A link fails if the name is taken; a rename would replace the file. Some file systems (USB sticks) have no links. */
async function giveName(draft: string, file: string): Promise<void> {
  try {
    await link(draft, file)
    await rm(draft)
  } catch (error) {
    if (isCode(error, 'EEXIST')) throw alreadyThere(file)
    if (!isCode(error, 'EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS')) throw error
    if (await lstat(file).catch(() => null)) throw alreadyThere(file)
    await rename(draft, file)
  }
}

/** A draft that a killed backup left holds secrets and takes room. A younger draft may be a backup under way. */
async function removeAbandonedDrafts(folder: string): Promise<void> {
  for (const name of await readdir(folder).catch(() => [])) {
    if (!DRAFT.test(name)) continue
    const found = await stat(join(folder, name)).catch(() => null)
    if (found && Date.now() - found.mtimeMs > ABANDONED_AFTER_MS) await rm(join(folder, name), { force: true })
  }
}

const alreadyThere = (file: string): Error => new Error(`${file} exists already: name a file that does not.`)
const cannotWrite = (file: string, error: unknown): Error =>
  new Error(`${file} cannot be written: ${error instanceof Error ? error.message : error}.`, { cause: error })
