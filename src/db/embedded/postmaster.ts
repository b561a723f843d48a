import { type ChildProcess, spawn } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Binaries, program } from './binaries.ts'
import type { ClusterPlace } from './cluster-place.ts'
import { readIfPresent } from './private-file.ts'
import {
  commandOf,
  identifyProcess,
  isPidTaken,
  isStillRunning,
  listProcesses,
  type ProcessIdentity,
} from './process-table.ts'
import { cannotRun, spawnOptions } from './run-program.ts'
import { openServerLog } from './server-log.ts'
import { clusterName, serverArguments } from './server-settings.ts'

// The server's main process, started by this process or left running by an earlier Muster.

export interface Postmaster {
  readonly pid: number
  /** Resolves with the way the server ended. Never rejects, and does not keep the Node process alive. */
  readonly gone: Promise<string>
  isGone(): Promise<boolean>
  signal(name: NodeJS.Signals): void
}

export type PidFileState =
  | { readonly kind: 'none' }
  /** The pid belongs to a process that is not this cluster's server. */
  | { readonly kind: 'stale' }
  | { readonly kind: 'ours'; readonly identity: ProcessIdentity; readonly port: number; readonly isStopping: boolean }

const pollMs = 250

/** The server is detached and writes into a file: it must outlive a killed Muster. */
export async function spawnPostmaster(
  binaries: Binaries,
  place: ClusterPlace,
  port: number,
  logFile: string,
): Promise<Postmaster> {
  const log = await openServerLog(logFile)
  try {
    const file = program(binaries, 'postgres')
    const child = spawn(file, serverArguments(place.cluster, port), {
      ...spawnOptions(place.runAs),
      detached: true,
      stdio: ['ignore', log.fd, log.fd],
    })
    await new Promise<void>((resolve, reject) => {
      child.once('spawn', resolve)
      child.once('error', (error) => reject(cannotRun(file, error)))
    })
    child.unref()
    return ownChild(child)
  } finally {
    await log.close()
  }
}

/** Never trusts the pid in the file: a process counts as ours only if it is a postgres started on this very folder. */
export async function readPidFile(cluster: string): Promise<PidFileState> {
  const lines = (await readIfPresent(join(cluster, 'postmaster.pid')))?.split('\n')
  if (lines === undefined) return { kind: 'none' }
  const pid = Number(lines[0])
  const identity = await identifyProcess(pid)
  const command = identity && (await commandOf(pid))
  if (!identity || !command?.includes(`/postgres -D ${cluster} -c `)) return { kind: 'stale' }
  return { kind: 'ours', identity, port: Number(lines[3] ?? 0), isStopping: lines[7]?.trim() === 'stopping' }
}

/** A server that is not a child of this process has to be polled. */
export function watchPostmaster(identity: ProcessIdentity): Postmaster {
  const isGone = async (): Promise<boolean> => !(await isStillRunning(identity))
  const gone = new Promise<string>((resolve) => {
    const timer = setInterval(async () => {
      if (!(await isGone())) return
      clearInterval(timer)
      resolve('it is gone')
    }, pollMs).unref()
  })
  return { pid: identity.pid, gone, isGone, signal: (name) => kill(identity.pid, name) }
}

/**
 * PostgreSQL recognises a dead pid by itself. But it refuses to start while the pid is taken, be it by another program
 * or by a process that nobody reaps.
 */
export async function removeStalePidFile(cluster: string): Promise<boolean> {
  const path = join(cluster, 'postmaster.pid')
  const pid = Number((await readIfPresent(path))?.split('\n')[0])
  if (!Number.isInteger(pid) || pid <= 0 || !isPidTaken(pid)) return false
  if ((await readPidFile(cluster)).kind !== 'stale') return false
  await rm(path, { force: true })
  return true
}

export interface Patience {
  /** The time for a fast shutdown, which ends connections and writes a checkpoint. */
  readonly fastMs: number
  /** The time for an immediate shutdown, after which the next start recovers. */
  readonly immediateMs: number
}

/** Returns when no process of this server is left. */
export async function endPostmaster(postmaster: Postmaster, cluster: string, patience: Patience): Promise<void> {
  const steps: [NodeJS.Signals, number][] = [
    ['SIGINT', patience.fastMs],
    ['SIGQUIT', patience.immediateMs],
    ['SIGKILL', 10_000],
  ]
  for (const [name, waitMs] of steps) {
    if (await postmaster.isGone()) break
    postmaster.signal(name)
    // A stopped process (SIGSTOP) does not get the signal before it goes on.
    postmaster.signal('SIGCONT')
    if (await comesTrue(() => postmaster.isGone(), waitMs)) break
  }
  if (!(await postmaster.isGone())) throw new Error(`The database server (pid ${postmaster.pid}) could not be ended.`)
  await endLeftovers(cluster)
}

/**
 * Backends of a killed server notice its death only when they next wait; a long calculation holds the shared memory
 * until then, and no new server can start. Does nothing while the main process lives.
 */
export async function endLeftovers(cluster: string): Promise<void> {
  if ((await readPidFile(cluster)).kind === 'ours') return
  await comesTrue(async () => {
    const left = await findLeftovers(cluster)
    for (const pid of left) kill(pid, 'SIGQUIT')
    return left.length === 0
  }, 5_000)
}

async function findLeftovers(cluster: string): Promise<number[]> {
  const title = `postgres: ${clusterName(cluster)}: `
  return (await listProcesses()).filter(({ command }) => command.startsWith(title)).map(({ pid }) => pid)
}

function ownChild(child: ChildProcess): Postmaster {
  const pid = child.pid ?? 0
  const isOver = (): boolean => child.exitCode !== null || child.signalCode !== null
  const howItEnded = (): string => (child.signalCode ? `killed by ${child.signalCode}` : `exit code ${child.exitCode}`)
  const gone = isOver()
    ? Promise.resolve(howItEnded())
    : new Promise<string>((resolve) => child.once('exit', () => resolve(howItEnded())))
  return {
    pid,
    gone,
    isGone: async () => isOver(),
    signal: (name) => {
      // Once the process is over, its pid may belong to another one.
      if (!isOver()) kill(pid, name)
    },
  }
}

function kill(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // The process is already gone.
  }
}

async function comesTrue(condition: () => Promise<boolean>, withinMs: number): Promise<boolean> {
  const deadline = performance.now() + withinMs
  while (!(await condition())) {
    if (performance.now() > deadline) return false
    await sleep(20)
  }
  return true
}
