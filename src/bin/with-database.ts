import { claimDataFolder } from '../db/embedded/data-folder.ts'
import { runningUrl } from '../db/embedded/running-url.ts'
import type { Log } from '../kernel/log.ts'
import type { Config } from './config.ts'
import { openDatabase } from './database.ts'
import { untilInterrupted } from './interruption.ts'

/** Lends a command the database of the server that runs on the data folder, or one that is started for this call. */
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
    return await untilInterrupted((signal) => withOwnDatabase(config, log, use, onProgress, signal))
  } finally {
    await claim.release()
  }
}

/** An interruption stops the database at once, which ends all work on it. */
async function withOwnDatabase<Result>(
  config: Config,
  log: Log,
  use: (url: string) => Promise<Result>,
  onProgress: (sentence: string) => void,
  signal: AbortSignal,
): Promise<Result> {
  const stops: (() => Promise<void>)[] = []
  signal.addEventListener('abort', () => void stops.map((stop) => stop()))
  try {
    const database = await openDatabase(config, log, onProgress, (stop) => stops.push(stop))
    return await use(database.url)
  } catch (error) {
    throw signal.aborted ? signal.reason : error
  } finally {
    for (const stop of stops) await stop()
  }
}
