// The address of a data folder's server, in a file beside muster.pid: other commands do not know the server's settings.
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { type Config, urlHost } from './config.ts'
import { readRunningPid } from './running-pid.ts'

export interface Addresses {
  /** The server's address on this machine; the public address may belong to a proxy on another machine. */
  listen: string
  public: string
}

const addresses = z.object({ listen: z.string(), public: z.string() })
const fileOf = (dataDir: string): string => join(dataDir, 'muster.address')

export const configuredAddresses = (config: Config): Addresses => ({
  listen: `http://${urlHost(config.host)}:${config.port}`,
  public: config.publicUrl.origin,
})

export async function noteAddresses(config: Config): Promise<void> {
  const text = `${JSON.stringify(configuredAddresses(config))}\n`
  await writeFile(fileOf(config.dataDir), text, { mode: 0o600 })
}

export async function forgetAddresses(config: Config): Promise<void> {
  await rm(fileOf(config.dataDir), { force: true })
}

/** The addresses of the server that runs on the data folder, or those of this configuration if none runs. */
export async function findAddresses(config: Config): Promise<Addresses> {
  return (await readRunningAddresses(config.dataDir)) ?? configuredAddresses(config)
}

/** Null if no server runs on the data folder, or if it has not told its address yet. */
export async function readRunningAddresses(dataDir: string): Promise<Addresses | null> {
  if ((await readRunningPid(dataDir)) === null) return null
  const text = await readFile(fileOf(dataDir), 'utf8').catch(() => 'null')
  return addresses.safeParse(parseOrNull(text)).data ?? null
}

/** The file may be half written by a server that starts right now. */
function parseOrNull(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
