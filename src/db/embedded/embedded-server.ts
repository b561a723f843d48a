import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../../kernel/log.ts'
import { appLogin, ensureAppRole } from './app-role.ts'
import { type Binaries, findPackagedBinaries, prepareBinaries } from './binaries.ts'
import {
  type BringUpNeeds,
  bringUp,
  HopelessStart,
  serverLogFile,
  shutdownPatience,
  type UpServer,
} from './bring-up.ts'
import { ensureCluster } from './cluster.ts'
import { placeCluster } from './cluster-place.ts'
import { endLeftovers, endPostmaster } from './postmaster.ts'
import { databaseUrl } from './probe.ts'
import { trimServerLog } from './server-log.ts'
import { choosePort, rememberPort } from './server-port.ts'
import { nextWaitMs, shortestWaitMs, supervise } from './supervise.ts'

// The PostgreSQL server that Muster brings. Its programs come in npm packages and are spawned here: the usual wrapper
// can neither take over a server that outlived Muster nor notice that a server died. From the outside in: this file,
// supervise (restarts a dead server), bring-up (one attempt: adopt or launch), postmaster (the process), probe (asks
// for an answer); below them the files and users: cluster, app-role, cluster-place, binaries, run-as. data-folder
// stands apart: it lets one Muster at a time in.

type ServerState = 'starting' | 'running' | 'down' | 'stopped'
type StartOutcome = 'created' | 'started' | 'adopted'

export interface EmbeddedServer {
  /** Returns when the database answers. Throws one sentence that says what to do. */
  start(): Promise<StartOutcome>
  /** Connection string of the database `muster`, for its owner, who is no superuser. Stays the same until the stop. */
  url(): string
  state(): ServerState
  /** Returns when no process of the server is left. May be called at any time, also twice. */
  stop(): Promise<void>
}

export interface EmbeddedServerOptions {
  /** An absolute path, claimed by this process (data-folder.ts). */
  readonly dataDir: string
  readonly log: Log
  readonly onProgress?: (sentence: string) => void
  /** The folder for programs and cluster if Muster runs as root and PostgreSQL's user cannot reach them in place. */
  readonly relocationDir?: string
  /** If absent, the programs are found among the installed packages. */
  readonly packaged?: Binaries
}

const firstAttempts = 6
const logCheckMs = 60_000

export function createEmbeddedServer(options: EmbeddedServerOptions): EmbeddedServer {
  return new SupervisedServer(options)
}

class SupervisedServer implements EmbeddedServer {
  readonly #options: EmbeddedServerOptions
  #state: ServerState = 'stopped'
  #ending = new AbortController()
  #starting: Promise<StartOutcome> | null = null
  #stopping: Promise<void> | null = null
  #supervised: Promise<void> = Promise.resolve()
  #needs: BringUpNeeds | null = null
  #up: UpServer | null = null
  #url: string | null = null

  constructor(options: EmbeddedServerOptions) {
    this.#options = options
  }

  state(): ServerState {
    return this.#state
  }

  url(): string {
    if (this.#url === null) throw new Error('The embedded database has not been started.')
    return this.#url
  }

  async start(): Promise<StartOutcome> {
    if (this.#starting !== null) throw new Error('The embedded database has been started already.')
    this.#ending = new AbortController()
    this.#state = 'starting'
    this.#starting = this.#begin(this.#ending.signal)
    try {
      return await this.#starting
    } catch (error) {
      const wasStopped = this.#ending.signal.aborted
      await this.stop()
      throw wasStopped ? new Error('The embedded database was stopped while it was starting.') : error
    }
  }

  async stop(): Promise<void> {
    if (this.#starting === null) return
    this.#stopping ??= this.#end().finally(() => {
      this.#stopping = null
    })
    await this.#stopping
  }

  async #begin(signal: AbortSignal): Promise<StartOutcome> {
    const { log, dataDir } = this.#options
    const { needs, isNew } = await prepare(this.#options, signal)
    const portFile = join(dataDir, 'postgres.port')
    await trimServerLog(serverLogFile(dataDir))
    this.#needs = needs
    const up = await bringUpPatiently(needs, () => choosePort(portFile))
    this.#up = up
    await rememberPort(portFile, up.port)
    await ensureAppRole(up.port, needs.password)
    signal.throwIfAborted()
    this.#url = databaseUrl(up.port, appLogin(needs.password))
    this.#state = 'running'
    const outcome = isNew ? 'created' : up.isAdopted ? 'adopted' : 'started'
    log.info({ pid: up.postmaster.pid, port: up.port, outcome }, 'the database is running')
    this.#supervised = this.#superviseFrom(up, needs, signal)
    return outcome
  }

  async #superviseFrom(first: UpServer, needs: BringUpNeeds, signal: AbortSignal): Promise<void> {
    const { log, dataDir } = this.#options
    const trimming = setInterval(() => {
      trimServerLog(serverLogFile(dataDir)).catch((err) => log.warn({ err }, 'postgres.log could not be trimmed'))
    }, logCheckMs).unref()
    await supervise({
      first,
      // The port stays the same, so that pools find the server again.
      bringUpAgain: () => bringUp(needs, async () => first.port),
      onDown: () => {
        this.#up = null
        this.#state = 'down'
      },
      onUp: (up) => {
        this.#up = up
        this.#state = 'running'
      },
      log,
      signal,
    })
    clearInterval(trimming)
  }

  async #end(): Promise<void> {
    this.#ending.abort()
    this.#state = 'stopped'
    await this.#starting?.catch(() => undefined)
    await this.#supervised
    // A restart that has just succeeded may have set another state.
    this.#state = 'stopped'
    if (this.#up !== null && this.#needs !== null) {
      await endPostmaster(this.#up.postmaster, this.#needs.place.cluster, shutdownPatience)
    } else if (this.#needs !== null) {
      await endLeftovers(this.#needs.place.cluster)
    }
    this.#up = null
    this.#needs = null
    this.#url = null
    this.#starting = null
  }
}

async function prepare(
  options: EmbeddedServerOptions,
  signal: AbortSignal,
): Promise<{ needs: BringUpNeeds; isNew: boolean }> {
  const { dataDir, log, onProgress = () => undefined, relocationDir = '/var/lib/muster' } = options
  const packaged = options.packaged ?? (await findPackagedBinaries())
  const place = await placeCluster(dataDir, relocationDir)
  const binaries = await prepareBinaries({ packaged, runAs: place.runAs, dataDir, relocationDir, onProgress })
  const { isNew, password } = await ensureCluster({ place, binaries, dataDir, onProgress, signal })
  return { needs: { binaries, place, dataDir, password, log, onProgress, signal }, isNew }
}

/** The remains of a killed server hold its memory for a moment, and a port may be taken at the last moment. */
async function bringUpPatiently(needs: BringUpNeeds, port: () => Promise<number>): Promise<UpServer> {
  let waitMs = shortestWaitMs
  for (let attempt = 1; ; attempt++) {
    try {
      return await bringUp(needs, port)
    } catch (error) {
      if (needs.signal.aborted) throw error
      if (error instanceof HopelessStart || attempt === firstAttempts) throw cannotStart(error, needs.dataDir)
      needs.log.warn({ err: error, attempt }, 'the database server did not start')
    }
    await sleep(waitMs, undefined, { signal: needs.signal })
    waitMs = nextWaitMs(waitMs)
  }
}

function cannotStart(error: unknown, dataDir: string): Error {
  const reason = error instanceof Error ? error.message : String(error)
  return new Error(`The database could not be started: ${reason} (see ${serverLogFile(dataDir)}).`, { cause: error })
}
