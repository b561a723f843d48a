import { createHash } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import { readArchive } from './backup-archive.ts'
import {
  type ArchiveMember,
  formatVersion,
  type Manifest,
  manifestName,
  manifestSchema,
  markerName,
  markerSchema,
} from './backup-manifest.ts'
import { isCode } from './embedded/private-file.ts'

/** A backup whose every byte has been read and checked. */
export interface OpenBackup {
  readonly manifest: Manifest
  /** The secrets, by the name of their file in the data folder. */
  readonly secrets: ReadonlyMap<string, string>
  /** Part after part, in the order of the manifest's tables. Each part is checked again: the file may have changed. */
  readParts(): AsyncGenerator<{ name: string; body: Buffer }>
  close(): Promise<void>
}

const SECRETS = 'secrets/'
const SMALL_BYTES = 64 * 1024
const MANIFEST_BYTES = 256 * 1024 * 1024

/** Reads the whole file; throws one sentence if it is no backup, was cut short or altered, or is too new. */
export async function openBackup(file: string): Promise<OpenBackup> {
  const handle = await openFile(file)
  try {
    const { manifest, secrets } = await verify(handle, file)
    return { manifest, secrets, readParts: () => readParts(handle, file, manifest), close: () => handle.close() }
  } catch (error) {
    await handle.close()
    throw error
  }
}

async function verify(handle: FileHandle, file: string): Promise<{ manifest: Manifest; secrets: Map<string, string> }> {
  const found: ArchiveMember[] = []
  const secrets = new Map<string, string>()
  let manifestText: string | null = null
  for await (const { name, body } of members(handle, file)) {
    if (manifestText !== null) throw damaged(file)
    if (name === manifestName) {
      manifestText = (await readWhole(body, MANIFEST_BYTES, file)).toString()
    } else if (name.startsWith(SECRETS)) {
      const bytes = await readWhole(body, SMALL_BYTES, file)
      secrets.set(name.slice(SECRETS.length), bytes.toString())
      found.push({ name, size: bytes.length, sha256: sha256(bytes) })
    } else {
      found.push(await measure(name, body))
    }
  }
  const manifest = parseManifest(manifestText, file)
  const promised = [...manifest.tables.flatMap((table) => table.parts), ...manifest.secrets]
  if (JSON.stringify(promised) !== JSON.stringify(found)) throw damaged(file)
  if (manifest.secrets.some(({ name }) => !secrets.has(name.slice(SECRETS.length)))) throw damaged(file)
  return { manifest, secrets }
}

async function* readParts(
  handle: FileHandle,
  file: string,
  manifest: Manifest,
): AsyncGenerator<{ name: string; body: Buffer }> {
  const promised = new Map(manifest.tables.flatMap((table) => table.parts).map((part) => [part.name, part]))
  for await (const { name, body } of members(handle, file)) {
    const part = promised.get(name)
    if (!part) {
      for await (const _ of body);
      continue
    }
    const bytes = await readWhole(body, part.size, file)
    if (sha256(bytes) !== part.sha256) throw damaged(file)
    promised.delete(name)
    yield { name, body: bytes }
  }
  if (promised.size > 0) throw damaged(file)
}

/** The members after the marker. A decoder's error after the marker means damage; before it, the file is no backup. */
async function* members(handle: FileHandle, file: string): ReturnType<typeof readArchive> {
  let refuse = foreign
  const guard = async function* <Item>(items: AsyncIterable<Item>): AsyncGenerator<Item> {
    try {
      yield* items
    } catch (error) {
      throw error instanceof BackupRefused ? error : refuse(file, error)
    }
  }
  for await (const { name, body } of guard(readArchive(handle))) {
    if (refuse === damaged) {
      yield { name, body: guard(body) }
      continue
    }
    if (name !== markerName) throw foreign(file)
    checkMarker((await readWhole(guard(body), SMALL_BYTES, file)).toString(), file)
    refuse = damaged
  }
  if (refuse !== damaged) throw foreign(file)
}

function checkMarker(text: string, file: string): void {
  const marker = markerSchema.safeParse(parseJson(text))
  if (!marker.success) throw foreign(file)
  if (marker.data.version > formatVersion) {
    throw new BackupRefused(
      `${file} was made by a newer Muster (${marker.data.muster_version}): restore it with that release.`,
    )
  }
}

function parseManifest(text: string | null, file: string): Manifest {
  if (text === null) throw damaged(file)
  const manifest = manifestSchema.safeParse(parseJson(text))
  if (!manifest.success) throw damaged(file, manifest.error)
  return manifest.data
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

async function readWhole(body: AsyncIterable<Buffer>, limit: number, file: string): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > limit) throw damaged(file)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

async function measure(name: string, body: AsyncIterable<Buffer>): Promise<ArchiveMember> {
  const hash = createHash('sha256')
  let size = 0
  for await (const chunk of body) {
    hash.update(chunk)
    size += chunk.length
  }
  return { name, size, sha256: hash.digest('hex') }
}

async function openFile(file: string): Promise<FileHandle> {
  try {
    const handle = await open(file, 'r')
    if ((await handle.stat()).isFile()) return handle
    await handle.close()
  } catch (error) {
    if (isCode(error, 'ENOENT', 'ENOTDIR')) throw new BackupRefused(`There is no file ${file}.`)
    throw new BackupRefused(`${file} cannot be read: ${error instanceof Error ? error.message : error}.`)
  }
  throw new BackupRefused(`${file} is not a file.`)
}

class BackupRefused extends Error {}

const foreign = (file: string, cause?: unknown): BackupRefused =>
  new BackupRefused(`${file} is not a backup that Muster made.`, { cause })
const damaged = (file: string, cause?: unknown): BackupRefused =>
  new BackupRefused(`${file} is damaged: it was cut short or altered. Use another copy of the backup.`, { cause })

const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')
