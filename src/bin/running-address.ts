// The address of the server of a data folder. Kept beside muster.pid while it runs, for the commands that talk
// about that server: they cannot know with which settings it was started.
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { type Config, urlHost } from './config.ts'
import { readRunningPid } from './running-pid.ts'

export interface Addresses {
  /** Where it listens on this machine; the public address may be that of a proxy elsewhere. */
  listen: string
  public: string
}

const addresses = z.object({ listen: z.string(), public: z.string() })
const fileOf = (dataDir: string): string => join(dataDir, 'muster.address')

export const configuredAddresses = (config: Config): Addresses => ({
  listen: `http://${urlHost(config.host)}:${config.port}`,
  public: config.publicUrl.origin,
})

export async function noteAddresses(config: Config): Promise<() => Promise<void>> {
  const file = fileOf(config.dataDir)
  await writeFile(file, `${JSON.stringify(configuredAddresses(config))}\n`, { mode: 0o600 })
  return () => rm(file, { force: true })
}

/** Those of the server that runs on the data folder, else those this configuration would give. */
export async function findAddresses(config: Config): Promise<Addresses> {
  if ((await readRunningPid(config.dataDir)) === null) return configuredAddresses(config)
  const text = await readFile(fileOf(config.dataDir), 'utf8').catch(() => 'null')
  return addresses.safeParse(JSON.parse(text)).data ?? configuredAddresses(config)
}
