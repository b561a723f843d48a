import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Log } from '../kernel/log.ts'
import { randomToken, readOrCreateSecretFile } from '../secrets/key-file.ts'
import type { Config } from './config.ts'

export interface InstanceSecrets {
  adminToken: string
  secretKey: string
}

export const adminTokenFile = (dataDir: string): string => join(dataDir, 'admin.token')
export const secretKeyFile = (dataDir: string): string => join(dataDir, 'secret.key')

/** A new key could not open the secrets of an existing cluster, so no key is made if a cluster exists. */
function requireKeyOfCluster(dataDir: string): void {
  const hasCluster = existsSync(join(dataDir, 'postgres')) || existsSync(join(dataDir, 'postgres.location'))
  if (!hasCluster || existsSync(secretKeyFile(dataDir))) return
  throw new Error(
    `${secretKeyFile(dataDir)} is missing; the database in this folder needs that key. Put it back, or set MUSTER_SECRET_KEY.`,
  )
}

/** Reads the secrets from the environment, or else from the data folder, in which the first start makes them. */
export async function readInstanceSecrets(config: Config, log: Log): Promise<InstanceSecrets> {
  const fromFile = async (path: string): Promise<string> => {
    const { value, tightened } = await readOrCreateSecretFile(path, () => randomToken())
    if (tightened) log.warn({ path }, 'a secret file could be read by others; its mode is 0600 again')
    return value
  }
  if (config.secretKey === null) requireKeyOfCluster(config.dataDir)
  return {
    adminToken: config.adminToken ?? (await fromFile(adminTokenFile(config.dataDir))),
    secretKey: config.secretKey ?? (await fromFile(secretKeyFile(config.dataDir))),
  }
}
