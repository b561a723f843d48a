import { randomUUID } from 'node:crypto'
import { access, chmod, constants, mkdir, open, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { giveToFolderOwner, isCode, readIfPresent, writePrivateFile } from './private-file.ts'
import { currentBoot, identifyProcess } from './process-table.ts'

// One server per data folder. Two files guard this rule:
// - muster.lock is locked by the kernel while the process lives (SQLite's file lock: Node has no other). The lock decides
//   between simultaneous starts. Other containers see it too, although pids mean nothing to them: two containers on one
//   volume would otherwise run two PostgreSQL servers on the same files and destroy them.
// - muster.pid holds the pid alone, for "kill $(cat muster.pid)", and is checked as well, for file systems without
//   locks. muster.claim tells that process from another of the same pid.
// Nothing else in this process may open muster.lock: POSIX drops the lock when any handle to the file is closed.

export interface DataFolderClaim {
  /** Frees the folder. Removes muster.pid and muster.claim only while they are still this claim's. */
  release(): Promise<void>
}

/** Throws one sentence when another living server has the folder. Makes the folder if needed. */
export async function claimDataFolder(dataDir: string): Promise<DataFolderClaim> {
  await makeDataFolder(dataDir)
  const pidFile = join(dataDir, 'muster.pid')
  const claimFile = join(dataDir, 'muster.claim')
  const lock = await lockFolder(dataDir)
  if (lock === null) throw inUse(dataDir, await readIfPresent(pidFile))
  try {
    const before = await readIfPresent(pidFile)
    if (before !== null && (await isHolderAlive(before, await readIfPresent(claimFile)))) {
      throw inUse(dataDir, before)
    }
    const myPid = `${process.pid}\n`
    const myClaim = await describeSelf()
    // In this order a kill at any point leaves no pid beside another process's claim.
    await rm(pidFile, { force: true })
    await writePrivateFile(claimFile, myClaim)
    await writePrivateFile(pidFile, myPid)
    return {
      async release() {
        if (!lock.isOpen) return
        const isMine = [myClaim, null].includes(await readIfPresent(claimFile))
        if (isMine && (await readIfPresent(pidFile)) === myPid) await rm(pidFile, { force: true })
        if (isMine) await rm(claimFile, { force: true })
        lock.close()
      },
    }
  } catch (error) {
    lock.close()
    throw error
  }
}

async function makeDataFolder(dataDir: string): Promise<void> {
  try {
    // Only the folder itself is private: parents that root makes with 0700 would keep PostgreSQL's user out.
    await mkdir(dirname(dataDir), { recursive: true })
    await mkdir(dataDir, { mode: 0o700 }).catch((error) => {
      if (!isCode(error, 'EEXIST')) throw error
    })
    await access(`${dataDir}/.`, constants.W_OK | constants.X_OK)
  } catch (error) {
    throw new Error(`The data folder ${dataDir} cannot be used (${reason(error)}).`, { cause: error })
  }
}

/** Null when another process holds the lock. */
async function lockFolder(dataDir: string): Promise<DatabaseSync | null> {
  const path = join(dataDir, 'muster.lock')
  let lock: DatabaseSync | undefined
  try {
    await makeLockFile(path)
    lock = new DatabaseSync(path, { timeout: 0 })
    lock.exec('begin exclusive')
    return lock
  } catch (error) {
    lock?.close()
    if (error instanceof Error && error.message.includes('locked')) return null
    throw new Error(`The data folder ${dataDir} cannot be locked (${reason(error)}, ${path}).`, { cause: error })
  }
}

/** The file is private before it is locked: a user who may read it may lock it, and would keep Muster from starting. */
async function makeLockFile(path: string): Promise<void> {
  try {
    // The open fails if the file exists.
    await (await open(path, 'wx', 0o600)).close()
  } catch (error) {
    if (!isCode(error, 'EEXIST')) throw error
  }
  await chmod(path, 0o600)
  await giveToFolderOwner(path)
}

/** Line 1 holds the pid, line 2 the start of that process, line 3 the boot of the machine, line 4 this claim. */
async function describeSelf(): Promise<string> {
  const self = await identifyProcess(process.pid)
  return `${process.pid}\n${self?.start ?? ''}\n${await currentBoot()}\n${randomUUID()}\n`
}

async function isHolderAlive(pidText: string, claimText: string | null): Promise<boolean> {
  const [pid = ''] = pidText.split('\n')
  const [claimPid, start = '', boot = ''] = claimText?.split('\n') ?? []
  // In a container Muster is pid 1 every time, so its own pid in the file is that of an earlier process.
  if (Number(pid) === process.pid) return false
  const found = await identifyProcess(Number(pid))
  if (found === null) return false
  if (claimPid !== pid) return true
  if (boot !== '' && boot !== (await currentBoot())) return false
  return start === '' || start === found.start
}

function inUse(dataDir: string, holder: string | null): Error {
  const pid = holder?.split('\n')[0] || 'unknown'
  return new Error(
    `Another Muster server (pid ${pid}) is using the data folder ${dataDir}: stop it, or give this one another folder.`,
  )
}

const reason = (error: unknown): string => (error instanceof Error ? error.message : String(error))
