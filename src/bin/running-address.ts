// The address of the server of a data folder. It is kept beside muster.pid while the server runs, for other commands:
// they cannot know with which settings the server was started.
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { type Config, urlHost } from './config.ts'
import { readRunningPid } from './running-pid.ts'

export interface Addresses {
  /** The server's address on this machine; the public address may be that of a proxy elsewhere. */
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
  if ((await readRunningPid(config.dataDir)) === null) return configuredAddresses(config)
  const text = await readFile(fileOf(config.dataDir), 'utf8').catch(() => 'null')
  return addresses.safeParse(JSON.parse(text)).data ?? configuredAddresses(config)
}
