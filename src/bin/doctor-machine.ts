import { constants } from 'node:fs'
import { access, readFile, stat, statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import manifest from '../../package.json' with { type: 'json' }
import { type Binaries, findPackagedBinaries, majorVersion, program } from '../db/embedded/binaries.ts'
import { readIfPresent } from '../db/embedded/private-file.ts'
import type { Config } from './config.ts'
import { type Finding, look, mend, well } from './finding.ts'
import { adminTokenFile, secretKeyFile } from './secrets.ts'

const NODE_AT_LEAST = manifest.engines.node.replace('>=', '')
const DISK_ENOUGH_BYTES = 1024 ** 3

export async function checkNode(): Promise<Finding[]> {
  const found = process.versions.node
  if (found.localeCompare(NODE_AT_LEAST, 'en', { numeric: true }) >= 0) return [well(`Node.js ${found}`)]
  return [
    mend(`Node.js ${found} is too old: use "npm start", which brings its own, or install ${NODE_AT_LEAST} or newer.`),
  ]
}

export async function checkBinaries(config: Config): Promise<Finding[]> {
  if (config.databaseUrl !== null) return []
  const binaries = await findPackagedBinaries()
  for (const name of ['initdb', 'postgres'] as const) {
    const file = program(binaries, name)
    if (!(await can(file, constants.X_OK)))
      return [mend(`${file} is missing or cannot be run: run "npm install" again.`)]
  }
  const missing = await countMissingLinks(binaries)
  const text = `PostgreSQL ${majorVersion(binaries)} (npm package ${binaries.version})`
  if (missing === 0) return [well(text)]
  return [
    look(`${text} lacks ${missing} links between its libraries (no install scripts ran): the next start makes them.`),
  ]
}

export async function checkDataFolder({ dataDir }: Config): Promise<Finding[]> {
  const found = await stat(dataDir).catch(() => null)
  if (found === null) {
    const above = await nearestFolder(dataDir)
    if (!(await can(above, constants.W_OK | constants.X_OK))) {
      return [
        mend(`The data folder ${dataDir} cannot be made: ${above} is not writable. Choose another with --data-dir.`),
      ]
    }
    return [well(`The data folder ${dataDir} will be made at the first start`)]
  }
  if (!found.isDirectory()) return [mend(`${dataDir} is not a folder: choose another with --data-dir.`)]
  if (!(await can(dataDir, constants.R_OK | constants.W_OK | constants.X_OK))) {
    return [mend(`The data folder ${dataDir} is not writable: start Muster as its owner, or run "chown" on it.`)]
  }
  return [well(`The data folder ${dataDir} is writable`)]
}

export async function checkSecretFiles({ dataDir }: Config): Promise<Finding[]> {
  const findings: Finding[] = []
  for (const path of [secretKeyFile(dataDir), adminTokenFile(dataDir), join(dataDir, 'postgres.password')]) {
    const found = await stat(path).catch(() => null)
    if (found === null) continue
    if ((found.mode & 0o077) !== 0) findings.push(mend(`${path} can be read by others: run "chmod 600 ${path}".`))
    else if (!(await can(path, constants.R_OK)))
      findings.push(mend(`${path} cannot be read: start Muster as its owner.`))
    else findings.push(well(`${path} is private`))
  }
  return findings
}

/** If root starts Muster below a private folder, the cluster is elsewhere; people who copy the folder must know. */
export async function checkRelocation({ dataDir }: Config): Promise<Finding[]> {
  const pointer = join(dataDir, 'postgres.location')
  const place = (await readIfPresent(pointer))?.trim()
  if (!place) return []
  if ((await stat(place).catch(() => null)) === null) {
    return [
      mend(
        `The database should be in ${place}, which does not exist: put it back, or remove ${pointer} to begin anew.`,
      ),
    ]
  }
  return [look(`The database is outside the data folder, in ${place}: copy both, or use "muster backup".`)]
}

export async function checkDisk({ dataDir }: Config): Promise<Finding[]> {
  const place = (await readIfPresent(join(dataDir, 'postgres.location')))?.trim() || dataDir
  const folder = await nearestFolder(place)
  const { bavail, bsize } = await statfs(folder)
  const free = bavail * bsize
  const text = `${(free / 1024 ** 3).toFixed(1)} GiB free on the disk of ${folder}`
  return [free < DISK_ENOUGH_BYTES ? look(`${text}: make room, a full disk stops the database.`) : well(text)]
}

/** The major version of the cluster's files; null without a cluster. */
export async function clusterVersion(dataDir: string): Promise<string | null> {
  const place = (await readIfPresent(join(dataDir, 'postgres.location')))?.trim()
  const cluster = place ? join(place, 'data') : join(dataDir, 'postgres')
  return (await readIfPresent(join(cluster, 'PG_VERSION')))?.trim() ?? null
}

async function countMissingLinks({ native }: Binaries): Promise<number> {
  const list: unknown = JSON.parse(await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]'))
  let missing = 0
  for (const entry of Array.isArray(list) ? list : []) {
    // The path begins at the package's root: native/lib/libpq.so.5
    const target = String((entry as { target?: unknown } | null)?.target)
    if ((await stat(join(dirname(native), target)).catch(() => null)) === null) missing++
  }
  return missing
}

async function nearestFolder(path: string): Promise<string> {
  return (await stat(path).catch(() => null)) ? path : nearestFolder(dirname(path))
}

async function can(path: string, mode: number): Promise<boolean> {
  return access(path, mode).then(
    () => true,
    () => false,
  )
}
