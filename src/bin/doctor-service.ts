import { findPackagedBinaries, majorVersion } from '../db/embedded/binaries.ts'
import { readIfPresent } from '../db/embedded/private-file.ts'
import { runningUrl } from '../db/embedded/running-url.ts'
import { loadMigrations, schemaVersion } from '../db/migrate.ts'
import { createPool, type Pool } from '../db/pool.ts'
import { NoSessions, requireSessions } from '../db/session.ts'
import { createEgress } from '../egress/egress.ts'
import { isBoundTo } from '../identity/instance.ts'
import { readKeyFingerprint } from '../identity/key-fingerprint.ts'
import { silentLog } from '../kernel/log.ts'
import { createCipher } from '../secrets/cipher.ts'
import { type Config, urlHost } from './config.ts'
import { migrationsFolder } from './database.ts'
import { clusterVersion } from './doctor-machine.ts'
import { type Finding, look, mend, well } from './finding.ts'
import { configuredAddresses, findAddresses } from './running-address.ts'
import { readRunningPid } from './running-pid.ts'
import { secretKeyFile } from './secrets.ts'

const POSTGRES_AT_LEAST = 15
const SECRET_AT_LEAST = 16
const ANSWERS_WITHIN_MS = 3_000

export async function checkDatabase(config: Config): Promise<Finding[]> {
  const url = config.databaseUrl ?? (await runningUrl(config.dataDir))
  if (url === null) return checkStoppedCluster(config.dataDir)
  const pool = createPool({ url, max: 1, log: silentLog, connectTimeoutMs: ANSWERS_WITHIN_MS })
  try {
    if (config.databaseUrl !== null) await requireSessions(config.databaseUrl)
    return [await checkServer(pool, config), await checkSchema(pool), ...(await checkKey(pool, config))]
  } catch (error) {
    if (error instanceof NoSessions) return [mend(error.message)]
    const reason = error instanceof Error && error.message !== '' ? error.message : 'it cannot be reached'
    const advice =
      config.databaseUrl === null ? 'see postgres.log in the data folder' : 'check DATABASE_URL and the server'
    return [mend(`The database does not answer (${reason}): ${advice}.`)]
  } finally {
    await pool.end()
  }
}

async function checkStoppedCluster(dataDir: string): Promise<Finding[]> {
  const version = await clusterVersion(dataDir)
  if (version === null) return [well('The database will be made at the first start')]
  const ours = majorVersion(await findPackagedBinaries())
  if (version !== ours) {
    const advice = 'back it up with the Muster that made it and restore it into an empty data folder with this one'
    return [mend(`The database was made by PostgreSQL ${version}, and this Muster brings ${ours}: ${advice}.`)]
  }
  return [well(`The database (PostgreSQL ${version}) is not running; it starts with the server`)]
}

async function checkServer(pool: Pool, config: Config): Promise<Finding> {
  const { rows } = await pool.query<{ version: string }>(`select current_setting('server_version') as version`)
  const version = rows[0]?.version ?? 'of an unknown version'
  if (Number.parseInt(version, 10) < POSTGRES_AT_LEAST) {
    return mend(`The database is PostgreSQL ${version}: ${POSTGRES_AT_LEAST} or newer is needed.`)
  }
  return well(`The database (${config.databaseUrl === null ? 'embedded' : 'external'} PostgreSQL ${version}) answers`)
}

async function checkSchema(pool: Pool): Promise<Finding> {
  const [found, known] = await Promise.all([schemaVersion(pool), loadMigrations(migrationsFolder)])
  if (found === known.length) return well(`The tables are those of this release (migration ${found})`)
  if (found > known.length) {
    return look(
      `The tables are of a newer release (migration ${found}; this release has ${known.length}): use that release.`,
    )
  }
  const waiting = known.length - found
  const text = waiting === 1 ? '1 migration waits' : `${waiting} migrations wait`
  return look(`${text}: the next start, or "muster migrate", applies ${waiting === 1 ? 'it' : 'them'}.`)
}

async function checkKey(pool: Pool, { secretKey, dataDir }: Config): Promise<Finding[]> {
  if ((await readKeyFingerprint(pool)) === null) return []
  const file = secretKeyFile(dataDir)
  const key = secretKey ?? (await readIfPresent(file))?.trim()
  if (!key) return [mend(`The secret key is missing: put ${file} back, or set MUSTER_SECRET_KEY.`)]
  if (await isBoundTo(pool, createCipher(key).fingerprint())) return [well('The secret key fits the database')]
  const where = secretKey === null ? file : 'MUSTER_SECRET_KEY'
  return [mend(`The secret key does not fit the database: put the key that it was made with into ${where}.`)]
}

export async function checkPort(config: Config): Promise<Finding[]> {
  const pid = await readRunningPid(config.dataDir)
  // A server that runs may have been started with another PORT than this command.
  const { listen } = await findAddresses(config)
  const { port } = new URL(listen)
  const answers = await isPortTaken(listen)
  if (answers && pid !== null) return [well(`The server (pid ${pid}) answers on port ${port}`)]
  if (pid !== null) return [look(`A server (pid ${pid}) runs on this data folder but does not answer on port ${port}.`)]
  if (!answers) return [well(`Port ${config.port} is free`)]
  return [mend(`Port ${config.port} is used by another program: choose another with PORT.`)]
}

/** The service `ui` writes no pid file, so it cannot be told from another program on its port. */
export async function checkPagesPort(config: Config): Promise<Finding[]> {
  if (!(await isPortTaken(configuredAddresses(config).listen))) return [well(`Port ${config.port} is free`)]
  return [look(`Port ${config.port} is in use, by this service if it runs; else choose another with PORT.`)]
}

export async function checkAgent({ agentUrl }: Config): Promise<Finding[]> {
  if (agentUrl === null) return []
  const egress = createEgress({ allow: [] })
  try {
    const address = `${agentUrl.href.replace(/\/+$/, '')}/readyz`
    const answer = await egress.fetch('trusted')(address, { signal: AbortSignal.timeout(ANSWERS_WITHIN_MS) })
    await answer.body?.cancel()
    if (answer.ok) return [well(`The agent-service at ${agentUrl.origin} is ready`)]
    return [look(`The agent-service at ${agentUrl.origin} is not ready (${answer.status}).`)]
  } catch {
    return [mend(`The agent-service at ${agentUrl.origin} does not answer: start it, or set MUSTER_AGENT_URL.`)]
  } finally {
    await egress.close()
  }
}

/** A program that accepts the connection has taken the port, even if it does not speak HTTP. */
async function isPortTaken(address: string): Promise<boolean> {
  const egress = createEgress({ allow: [] })
  try {
    const answer = await egress.fetch('trusted')(`${address}/healthz`, {
      signal: AbortSignal.timeout(ANSWERS_WITHIN_MS),
    })
    await answer.body?.cancel()
    return true
  } catch (error) {
    return !isRefused(error)
  } finally {
    await egress.close()
  }
}

function isRefused(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if ('code' in error && error.code === 'ECONNREFUSED') return true
  return error instanceof AggregateError ? error.errors.every(isRefused) : isRefused(error.cause)
}

export async function checkSecretStrength(config: Config): Promise<Finding[]> {
  const given = { MUSTER_ADMIN_TOKEN: config.adminToken, MUSTER_SECRET_KEY: config.secretKey }
  return Object.entries(given).flatMap(([name, value]) => {
    if (value === null || value.length >= SECRET_AT_LEAST) return []
    return [
      look(
        `${name} is short and can be guessed: use ${SECRET_AT_LEAST} characters or more ("openssl rand -base64 32").`,
      ),
    ]
  })
}

export async function checkAddress({ host, port, publicUrl }: Config): Promise<Finding[]> {
  if (/^(127\.|localhost$|::1$)/.test(host)) return []
  if (publicUrl.href !== new URL(`http://${urlHost(host)}:${port}`).href) return []
  return [
    look(`Muster listens on ${host}, but links use ${publicUrl.origin}: set MUSTER_PUBLIC_URL to the public address.`),
  ]
}
