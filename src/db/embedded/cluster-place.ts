import { randomBytes } from 'node:crypto'
import { chmod, mkdir, realpath, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isCode, readIfPresent, writePrivateFile } from './private-file.ts'
import { chooseRunAs, firstObstacle, giveTree, type RunAs } from './run-as.ts'

// The place of the cluster (PostgreSQL's own folder), ordinarily <data folder>/postgres. If Muster runs as root and
// PostgreSQL's user cannot pass some folder above it (a home of mode 0700), the cluster is put under /var/lib/muster,
// in a folder that only <data folder>/postgres.location names. Removing the data folder then gives a fresh start. The
// file BELONGS-TO beside the cluster tells a copy of the data folder, which has the same pointer, from the data folder
// itself under a new name: no other data folder takes over the cluster of one that exists.

const OWNER = /^The database of the Muster data folder (.+)$/m

export interface ClusterPlace {
  readonly cluster: string
  readonly runAs: RunAs | null
}

export async function placeCluster(dataDir: string, relocationDir: string): Promise<ClusterPlace> {
  const pointerFile = pointerFileOf(dataDir)
  const pointer = await readPointer(dataDir)
  if (pointer !== null) return followPointer(pointer, dataDir)

  const cluster = await clusterFolder(dataDir)
  const runAs = await chooseRunAs(cluster)
  if (runAs === null) return { cluster, runAs }
  const closed = await firstObstacle(dirname(await realpath(dataDir)), runAs)
  if (closed === null) {
    await openDataFolder(dataDir, runAs)
    await takeFromRoot(cluster, runAs)
    return { cluster, runAs }
  }
  if (await exists(cluster)) {
    throw new Error(
      `The database in ${cluster} runs as the user ${runAs.name}, who cannot pass ${closed}: run "chmod o+x ${closed}", or start Muster as an ordinary user.`,
    )
  }
  return { cluster: await relocate(dataDir, relocationDir, pointerFile, runAs), runAs }
}

/** The folder of PostgreSQL's files for this data folder, or the ordinary place if there are none yet. */
export async function clusterFolder(dataDir: string): Promise<string> {
  const pointer = await readPointer(dataDir)
  return pointer === null ? join(await realpath(dataDir), 'postgres') : join(pointer, 'data')
}

/** Binaries and relocated clusters are put under this folder; every user may pass it. */
export async function makeRelocationFolder(relocationDir: string, runAs: RunAs | null): Promise<void> {
  try {
    await mkdir(relocationDir, { recursive: true })
    const { mode } = await stat(relocationDir)
    await chmod(relocationDir, (mode & 0o777) | 0o711)
    const closed = runAs && (await firstObstacle(relocationDir, runAs))
    if (closed) throw new Error(`the user ${runAs.name} cannot pass ${closed}`)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new Error(
      `PostgreSQL does not run as root and needs ${relocationDir}, which cannot be made (${reason}): move Muster and its data out of private folders, start it as an ordinary user, or set DATABASE_URL.`,
      { cause: error },
    )
  }
}

async function followPointer(place: string, dataDir: string): Promise<ClusterPlace> {
  const pointerFile = pointerFileOf(dataDir)
  if (!(await exists(place))) {
    // An empty database in place of the missing one would look like lost data, though the missing one can be put back.
    throw new Error(
      `${pointerFile} says that the database is in ${place}, which does not exist: put it back, or remove ${pointerFile} to begin with an empty database.`,
    )
  }
  await ensureOwner(place, dataDir)
  const cluster = join(await realpath(place), 'data')
  const runAs = await chooseRunAs(cluster)
  if (runAs !== null) await takeFromRoot(cluster, runAs)
  return { cluster, runAs }
}

/** Throws if the cluster belongs to another data folder; takes it over from a folder that is gone or was renamed. */
async function ensureOwner(place: string, dataDir: string): Promise<void> {
  const mine = await realpath(dataDir)
  const named = OWNER.exec((await readIfPresent(join(place, 'BELONGS-TO'))) ?? '')?.[1]
  const owner = named === undefined ? null : await realpathIfPresent(named)
  if (owner === mine) return
  const owned = owner && (await readPointer(owner))
  if (owned && (await realpathIfPresent(owned)) === (await realpath(place))) {
    throw new Error(
      `The data folder ${dataDir} is a copy of ${owner}, and the database stays with that one: use "muster backup" and "muster restore" to copy it.`,
    )
  }
  await writeOwner(place, mine)
}

async function writeOwner(place: string, dataDir: string): Promise<void> {
  const text = `The database of the Muster data folder ${dataDir}\nIf that folder is gone, this one can be removed.\n`
  await writePrivateFile(join(place, 'BELONGS-TO'), text)
}

async function relocate(dataDir: string, relocationDir: string, pointerFile: string, runAs: RunAs): Promise<string> {
  await makeRelocationFolder(relocationDir, runAs)
  const place = join(await realpath(relocationDir), `cluster-${randomBytes(8).toString('hex')}`)
  await mkdir(place)
  await chmod(place, 0o711)
  await writeOwner(place, await realpath(dataDir))
  await writePrivateFile(pointerFile, `${place}\n`)
  return join(place, 'data')
}

/** PostgreSQL's user must pass the data folder to reach the cluster. It cannot list the folder; secrets are 0600. */
async function openDataFolder(dataDir: string, runAs: RunAs): Promise<void> {
  if ((await firstObstacle(dataDir, runAs)) === null) return
  const { mode } = await stat(dataDir)
  await chmod(dataDir, (mode & 0o777) | 0o011)
}

/** A cluster copied back by root belongs to root, and PostgreSQL refuses root's files. */
async function takeFromRoot(cluster: string, runAs: RunAs): Promise<void> {
  const found = await stat(cluster).catch(() => null)
  if (found?.uid === 0) await giveTree(cluster, runAs)
}

const pointerFileOf = (dataDir: string): string => join(dataDir, 'postgres.location')

/** Null if the cluster is in the data folder. */
async function readPointer(dataDir: string): Promise<string | null> {
  return (await readIfPresent(pointerFileOf(dataDir)))?.trim() || null
}

async function realpathIfPresent(path: string): Promise<string | null> {
  try {
    return await realpath(path)
  } catch (error) {
    if (isCode(error, 'ENOENT', 'ENOTDIR')) return null
    throw error
  }
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null)) !== null
}
