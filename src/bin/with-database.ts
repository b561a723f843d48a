import { claimDataFolder } from '../db/embedded/data-folder.ts'
import { runningUrl } from '../db/embedded/running-url.ts'
import type { Log } from '../kernel/log.ts'
import type { Config } from './config.ts'
import { openDatabase } from './database.ts'

/**
 * Lends a command the database: the one of a server that runs on the data folder, or one started for this call alone
 * and stopped after it.
 */
export async function withDatabase<Result>(
  config: Config,
  log: Log,
  use: (url: string) => Promise<Result>,
  onProgress: (sentence: string) => void = () => {},
): Promise<Result> {
  const running = config.databaseUrl ?? (await runningUrl(config.dataDir))
  if (running !== null) return use(running)
  const claim = await claimDataFolder(config.dataDir)
  try {
    const database = await openDatabase(config, log, onProgress)
    try {
      return await use(database.url)
    } finally {
      await database.stop()
    }
  } finally {
    await claim.release()
  }
}
