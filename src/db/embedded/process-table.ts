import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { promisify } from 'node:util'

// Identifies other processes without privileges: /proc/<pid>/stat and cmdline are readable for everybody; exe and cwd
// need CAP_SYS_PTRACE, which root lacks in an ordinary container. Systems other than Linux use `ps`.

/** Tells a process from a later one that was given the same pid. `start` is opaque. */
export interface ProcessIdentity {
  readonly pid: number
  readonly start: string
}

export interface RunningProcess {
  readonly pid: number
  /** The arguments, joined by spaces. */
  readonly command: string
}

const onLinux = process.platform === 'linux'
const runFile = promisify(execFile)

/** Null when there is no such process. A dead process that nobody has reaped yet counts as none. */
export async function identifyProcess(pid: number): Promise<ProcessIdentity | null> {
  if (!Number.isInteger(pid) || pid <= 0) return null
  return onLinux ? identifyByProc(pid) : identifyByPs(pid)
}

export async function isStillRunning(identity: ProcessIdentity): Promise<boolean> {
  const found = await identifyProcess(identity.pid)
  return found !== null && found.start === identity.start
}

/** True while the kernel knows this pid, also for a dead process which nobody has reaped. */
export function isPidTaken(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}

/** Null when there is no such process. */
export async function commandOf(pid: number): Promise<string | null> {
  if (onLinux) return commandByProc(pid)
  const line = (await ps(['-p', String(pid), '-o', 'command='])).trim()
  return line === '' ? null : line
}

export async function listProcesses(): Promise<RunningProcess[]> {
  if (onLinux) {
    const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
    const found = await Promise.all(pids.map(async (pid) => ({ pid, command: (await commandByProc(pid)) ?? '' })))
    return found.filter(({ command }) => command !== '')
  }
  return (await ps(['-ax', '-o', 'pid=', '-o', 'command='])).split('\n').flatMap((line) => {
    const match = /^\s*(\d+)\s+(.+)$/.exec(line)
    return match?.[1] && match[2] ? [{ pid: Number(match[1]), command: match[2] }] : []
  })
}

/** An id that changes with every boot, because a start time counted from the boot may come twice. */
export async function currentBoot(): Promise<string> {
  return (await readOrNull('/proc/sys/kernel/random/boot_id'))?.trim() ?? ''
}

async function identifyByProc(pid: number): Promise<ProcessIdentity | null> {
  const stat = await readOrNull(`/proc/${pid}/stat`)
  if (stat === null) return null
  // The second field, the program's name in brackets, may hold anything: count from the last bracket. Field 3 is the
  // state, 22 the start in clock ticks since boot.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const state = fields[0]
  const start = fields[19]
  if (start === undefined || state === 'Z' || state === 'X') return null
  return { pid, start }
}

async function identifyByPs(pid: number): Promise<ProcessIdentity | null> {
  const match = /^(\S+)\s+(.+)$/.exec((await ps(['-p', String(pid), '-o', 'stat=', '-o', 'lstart='])).trim())
  if (!match?.[1] || !match[2] || match[1].startsWith('Z')) return null
  return { pid, start: match[2].replaceAll(/\s+/g, ' ') }
}

async function commandByProc(pid: number): Promise<string | null> {
  const line = (await readOrNull(`/proc/${pid}/cmdline`))?.replaceAll('\0', ' ').trim()
  return line === undefined || line === '' ? null : line
}

async function readOrNull(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8')
  } catch {
    // The process ended before it was read, or is hidden from this user: it counts as none.
    return null
  }
}

async function ps(selection: string[]): Promise<string> {
  try {
    const { stdout } = await runFile('/bin/ps', ['-ww', ...selection], { env: { LC_ALL: 'C', TZ: 'UTC' } })
    return stdout
  } catch {
    // ps exits with 1 when nothing matches.
    return ''
  }
}
