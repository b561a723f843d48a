// The server that a command talks to, and the key for it: MUSTER_URL and MUSTER_KEY, or the data folder of a server on
// this machine, which holds its address and its admin token.
import { readFile } from 'node:fs/promises'
import type { ServerPlace } from '../cli/client.ts'
import { unreachable } from '../cli/exit-codes.ts'
import type { ServerConfig } from './config.ts'
import { readRunningAddresses } from './running-address.ts'
import { readRunningPid } from './running-pid.ts'
import { adminTokenFile } from './secrets.ts'

/** Throws a CommandFailure that says what to do. */
export async function locateServer({ url, key, dataDir }: ServerConfig): Promise<ServerPlace> {
  const address = url ?? (await runningUrl(dataDir))
  if (key !== null) return { url: address, key, keyFrom: url ? 'MUSTER_KEY' : 'MUSTER_KEY or MUSTER_ADMIN_TOKEN' }
  const file = adminTokenFile(dataDir)
  const token = await readFile(file, 'utf8').catch((error: unknown) => {
    const isRefused = error instanceof Error && 'code' in error && error.code === 'EACCES'
    throw unreachable(
      isRefused
        ? `Only the user who started Muster can read ${file}. Set MUSTER_KEY to a key of yours.`
        : `There is no admin token in ${dataDir}. Set MUSTER_KEY to a key of yours.`,
    )
  })
  return { url: address, key: token.trim(), keyFrom: file }
}

async function runningUrl(dataDir: string): Promise<URL> {
  const addresses = await readRunningAddresses(dataDir)
  if (addresses) return new URL(addresses.listen)
  if ((await readRunningPid(dataDir)) !== null) throw unreachable(`The server on ${dataDir} is still starting.`)
  throw unreachable(
    `No server runs on ${dataDir}. Start it with "npm start", or name another one with MUSTER_URL and MUSTER_KEY.`,
  )
}
