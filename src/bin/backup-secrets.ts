// The secrets in a backup and a restore. Secrets from the environment are neither stored nor replaced.
import { basename } from 'node:path'
import { readIfPresent, writePrivateFile } from '../db/embedded/private-file.ts'
import { createCipher } from '../secrets/cipher.ts'
import type { Config } from './config.ts'
import { adminTokenFile, secretKeyFile } from './secrets.ts'

const secretKeyName = basename(secretKeyFile(''))
const adminTokenName = basename(adminTokenFile(''))

type Secrets = ReadonlyMap<string, string>

/** The secrets that were generated in the data folder and are in use, by the name of their file. */
export async function readGeneratedSecrets(config: Config, keyFingerprint: string | null): Promise<Secrets> {
  const found = new Map<string, string>()
  const key = config.secretKey === null ? await readSecret(secretKeyFile(config.dataDir)) : null
  if (key !== null && fits(key, keyFingerprint)) found.set(secretKeyName, `${key}\n`)
  const token = config.adminToken === null ? await readSecret(adminTokenFile(config.dataDir)) : null
  if (token !== null) found.set(adminTokenName, `${token}\n`)
  return found
}

export const holdsSecretKey = (secrets: Secrets): boolean => secrets.has(secretKeyName)
export const holdsAdminToken = (secrets: Secrets): boolean => secrets.has(adminTokenName)

/** The files a restore has to write. Throws one sentence if the available key would not open the restored secrets. */
export async function planSecrets(
  config: Config,
  backup: { secrets: Secrets; manifest: { key_fingerprint: string | null } },
): Promise<Secrets> {
  const plan = new Map<string, string>()
  const keyFile = secretKeyFile(config.dataDir)
  const key = { given: config.secretKey, present: await readSecret(keyFile), stored: stored(backup, secretKeyName) }
  requireFittingKey(key, backup.manifest.key_fingerprint, config.dataDir)
  if (key.given === null && key.present === null && key.stored !== null) plan.set(keyFile, `${key.stored}\n`)

  const tokenFile = adminTokenFile(config.dataDir)
  const token = { present: await readSecret(tokenFile), stored: stored(backup, adminTokenName) }
  if (config.adminToken === null && token.stored !== null) {
    if (token.present !== null && token.present !== token.stored) throw otherSecret(config.dataDir, adminTokenName)
    if (token.present === null) plan.set(tokenFile, `${token.stored}\n`)
  }
  return plan
}

export async function writeSecrets(plan: Secrets): Promise<void> {
  for (const [path, text] of plan) await writePrivateFile(path, text)
}

/** The key of the environment wins over the key in the folder, as at the next start. */
function requireFittingKey(
  { given, present, stored }: { given: string | null; present: string | null; stored: string | null },
  fingerprint: string | null,
  dataDir: string,
): void {
  if (given !== null) {
    if (fits(given, fingerprint)) return
    const orUnset = stored === null ? '' : ', or leave it unset: the backup holds the key'
    throw new Error(`MUSTER_SECRET_KEY is not the key that the backup was made with: set that one${orUnset}.`)
  }
  if (present !== null) {
    if (!fits(present, fingerprint) || (stored !== null && stored !== present))
      throw otherSecret(dataDir, secretKeyName)
    return
  }
  if (fingerprint === null || (stored !== null && fits(stored, fingerprint))) return
  throw new Error('The backup does not hold its secret key: set MUSTER_SECRET_KEY to the key that it was made with.')
}

const fits = (key: string, fingerprint: string | null): boolean =>
  fingerprint === null || createCipher(key).fingerprint() === fingerprint

const stored = (backup: { secrets: Secrets }, name: string): string | null => backup.secrets.get(name)?.trim() || null

const readSecret = async (path: string): Promise<string | null> => (await readIfPresent(path))?.trim() || null

const otherSecret = (dataDir: string, name: string): Error =>
  new Error(`The data folder ${dataDir} is not empty (it has another ${name}): restore into an empty one.`)
