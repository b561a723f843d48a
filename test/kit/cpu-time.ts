import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

/** The milliseconds that this process has computed so far. They do not pass while other processes have the machine. */
export function cpuTime(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}

/** The same of another process, as `ps` tells it: [days-][hours:]minutes:seconds. */
export async function cpuTimeOf(pid: number): Promise<number> {
  const { stdout } = await promisify(execFile)('ps', ['-o', 'time=', '-p', String(pid)])
  const [seconds = 0, minutes = 0, hours = 0, days = 0] = stdout.trim().split(/[-:]/).map(Number).reverse()
  return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000
}
