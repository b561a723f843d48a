import { randomBytes } from 'node:crypto'
import { chown, mkdtemp, readdir, rename, rm, rmdir, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { type Binaries, majorVersion, program } from './binaries.ts'
import type { ClusterPlace } from './cluster-place.ts'
import { isCode, readIfPresent, syncFolder, writePrivateFile } from './private-file.ts'
import { runProgram } from './run-program.ts'

// The cluster: PostgreSQL's own folder of files. It is made beside its place and renamed when it is whole, so a first
// start that is killed leaves files to sweep, never a broken database.

/** The owner of the cluster. It makes the database and the role that Muster works under (app-role.ts), nothing else. */
export const superuser = 'muster'

export interface ClusterNeeds {
  readonly place: ClusterPlace
  readonly binaries: Binaries
  readonly dataDir: string
  readonly onProgress: (sentence: string) => void
  readonly signal: AbortSignal
}

export interface ReadyCluster {
  readonly isNew: boolean
  readonly password: string
}

export async function ensureCluster(needs: ClusterNeeds): Promise<ReadyCluster> {
  const { place, binaries, dataDir, onProgress } = needs
  const passwordFile = join(dataDir, 'postgres.password')
  await removeLeftovers(place.cluster)
  const version = (await readIfPresent(join(place.cluster, 'PG_VERSION')))?.trim() ?? null
  if (version !== null) {
    checkVersion(version, majorVersion(binaries), place.cluster)
    return { isNew: false, password: await readPassword(passwordFile, place.cluster) }
  }
  onProgress(`Creating the database in ${place.cluster}.`)
  await removeIfEmpty(place.cluster)
  const password = randomBytes(32).toString('base64url')
  // The password is written before the cluster: after a kill in between the next start makes both anew.
  await writePrivateFile(passwordFile, `${password}\n`)
  await createCluster(needs, password)
  return { isNew: true, password }
}

async function createCluster({ place, binaries, signal }: ClusterNeeds, password: string): Promise<void> {
  const { cluster, runAs } = place
  // Each attempt has its own name: an initdb that outlives a killed Muster must not write into its successor's files.
  const staging = await mkdtemp(`${cluster}.new-`)
  const draft = join(staging, 'data')
  const passwordFile = join(staging, 'password')
  try {
    await writeFile(passwordFile, password, { mode: 0o600, flag: 'wx' })
    if (runAs !== null) for (const path of [staging, passwordFile]) await chown(path, runAs.uid, runAs.gid)
    await runProgram(program(binaries, 'initdb'), initdbArguments(draft, passwordFile), runAs, signal)
    await rename(draft, cluster)
    await syncFolder(dirname(cluster))
  } catch (error) {
    throw explainFailure(error, cluster)
  } finally {
    await rm(staging, { recursive: true, force: true })
  }
}

/** The builtin C.UTF-8 locale sorts the same on every machine, so an index never goes wrong with a new libc or ICU. */
const initdbArguments = (draft: string, passwordFile: string): string[] => [
  `--pgdata=${draft}`,
  `--username=${superuser}`,
  `--pwfile=${passwordFile}`,
  '--auth=scram-sha-256',
  '--encoding=UTF8',
  '--locale-provider=builtin',
  '--builtin-locale=C.UTF-8',
  '--locale=C',
  '--data-checksums',
  '--no-instructions',
]

function checkVersion(found: string, ours: string, cluster: string): void {
  if (found === ours) return
  throw new Error(
    `The database in ${cluster} was made by PostgreSQL ${found}, and this Muster brings PostgreSQL ${ours}: run "muster backup" with the Muster it was made by, then "muster restore" with this one into an empty data folder.`,
  )
}

async function readPassword(file: string, cluster: string): Promise<string> {
  const password = (await readIfPresent(file))?.trim()
  if (password) return password
  throw new Error(`${file} is missing, and without it the database in ${cluster} cannot be opened: put it back.`)
}

async function removeLeftovers(cluster: string): Promise<void> {
  const folder = dirname(cluster)
  for (const name of await readdir(folder)) {
    // A dying initdb may still write into the folder; the next start sweeps files that are added after this.
    if (name.startsWith(`${basename(cluster)}.new`)) {
      await rm(join(folder, name), { recursive: true, force: true, maxRetries: 3 }).catch(() => undefined)
    }
  }
}

async function removeIfEmpty(cluster: string): Promise<void> {
  try {
    await rmdir(cluster)
  } catch (error) {
    if (isCode(error, 'ENOENT')) return
    throw new Error(`${cluster} is not empty and holds no database: move it away, then start again.`, { cause: error })
  }
}

function explainFailure(error: unknown, cluster: string): Error {
  const reason = error instanceof Error ? error.message : String(error)
  if (/could not look up effective user ID/.test(reason)) {
    return new Error(
      `PostgreSQL needs its user (id ${process.getuid?.()}) to be listed in /etc/passwd: add the user, or set DATABASE_URL.`,
      { cause: error },
    )
  }
  return new Error(`The database could not be created in ${cluster}: ${reason}.`, { cause: error })
}
