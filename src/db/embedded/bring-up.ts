import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../../kernel/log.ts'
import type { Binaries } from './binaries.ts'
import type { ClusterPlace } from './cluster-place.ts'
import {
  endLeftovers,
  endPostmaster,
  type Patience,
  type Postmaster,
  readPidFile,
  removeStalePidFile,
  spawnPostmaster,
  watchPostmaster,
} from './postmaster.ts'
import { askServer, createDatabase, superuserLogin } from './probe.ts'
import { lastComplaint, sizeOf } from './server-log.ts'

// One attempt to get a server that answers: take over a running server, or start one.

export interface BringUpNeeds {
  readonly binaries: Binaries
  readonly place: ClusterPlace
  readonly dataDir: string
  readonly password: string
  readonly log: Log
  readonly onProgress: (sentence: string) => void
  readonly signal: AbortSignal
}

export interface UpServer {
  readonly postmaster: Postmaster
  readonly port: number
  readonly isAdopted: boolean
}

/** A failure that an immediate retry cannot mend. */
export class HopelessStart extends Error {}
/** Messages of PostgreSQL while the remains of a killed server disappear, or when a port was taken just now. */
const passing = /lock file|shared memory|TCP\/IP sockets/

export const shutdownPatience: Patience = { fastMs: 20_000, immediateMs: 10_000 }
/** The time a server may be silent. Recovery may take longer, but a recovering server says so. */
const startSilenceMs = 30_000
const adoptSilenceMs = 5_000

export const serverLogFile = (dataDir: string): string => join(dataDir, 'postgres.log')

/** `choosePort` is asked only when a server has to be started. */
export async function bringUp(needs: BringUpNeeds, choosePort: () => Promise<number>): Promise<UpServer> {
  const adopted = await adopt(needs)
  if (adopted !== null) return adopted
  if (await removeStalePidFile(needs.place.cluster)) {
    needs.log.warn({ cluster: needs.place.cluster }, 'removed a postmaster.pid that named a process of somebody else')
  }
  await endLeftovers(needs.place.cluster)
  return launch(needs, await choosePort())
}

async function adopt(needs: BringUpNeeds): Promise<UpServer | null> {
  const { place, log, onProgress } = needs
  const found = await readPidFile(place.cluster)
  if (found.kind !== 'ours') return null
  const { identity, port, isStopping } = found
  const postmaster = watchPostmaster(identity)
  if (!isStopping && port > 0) {
    try {
      await untilReady(needs, postmaster, port, adoptSilenceMs)
      return { postmaster, port, isAdopted: true }
    } catch (error) {
      if (error instanceof HopelessStart || needs.signal.aborted) throw error
      log.warn({ pid: identity.pid, err: error }, 'the database server left running does not answer')
    }
  }
  onProgress(`Ending the database server left running (pid ${identity.pid}).`)
  await endPostmaster(postmaster, place.cluster, shutdownPatience)
  return null
}

async function launch(needs: BringUpNeeds, port: number): Promise<UpServer> {
  const { binaries, place, dataDir } = needs
  const logFile = serverLogFile(dataDir)
  const logSize = await sizeOf(logFile)
  needs.signal.throwIfAborted()
  const postmaster = await spawnPostmaster(binaries, place, port, logFile)
  try {
    await untilReady(needs, postmaster, port, startSilenceMs)
    return { postmaster, port, isAdopted: false }
  } catch (error) {
    if (!(await postmaster.isGone())) {
      await endPostmaster(postmaster, place.cluster, shutdownPatience)
      throw error
    }
    const complaint = await lastComplaint(logFile, logSize)
    if (complaint === null) throw error
    throw passing.test(complaint) ? new Error(complaint, { cause: error }) : new HopelessStart(complaint)
  }
}

async function untilReady(
  { password, place, signal, onProgress }: BringUpNeeds,
  postmaster: Postmaster,
  port: number,
  silenceMs: number,
): Promise<void> {
  const askedAt = performance.now()
  let heardAt = askedAt
  let isTold = false
  for (;;) {
    signal.throwIfAborted()
    const answer = await askServer(port, superuserLogin(password))
    // The check comes after the answer, because another server that took the port may have answered.
    if (await postmaster.isGone()) throw new Error(`the server ended (${await postmaster.gone})`)
    switch (answer) {
      case 'ready':
        return
      case 'no database':
        return createDatabase(port, superuserLogin(password))
      case 'wrong password':
        throw new HopelessStart(
          `it does not accept the password in postgres.password, put back the file that belongs to ${place.cluster}`,
        )
      case 'not now':
        heardAt = performance.now()
        if (!isTold && heardAt - askedAt > 1_000) onProgress('The database is recovering from a crash.')
        isTold ||= heardAt - askedAt > 1_000
        break
      case 'silence':
        if (performance.now() - heardAt > silenceMs)
          throw new Error(`the server said nothing for ${silenceMs / 1000} s`)
    }
    await sleep(20, undefined, { signal })
  }
}
