// Finds the processes that a server has or left behind: by its process group, by the folder in their command lines, and
// by the titles of PostgreSQL's own processes.
import { readdir, readFile, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { listProcesses } from '../../src/db/embedded/process-table.ts'
import { clusterName } from '../../src/db/embedded/server-settings.ts'

/** Main processes of PostgreSQL servers whose data is under the folder. */
export async function serversUnder(folder: string): Promise<number[]> {
  return (await listProcesses())
    .filter(({ command }) => command.includes(`/postgres -D ${folder}/`))
    .map(({ pid }) => pid)
}

/** Command lines that name the folder, and the sessions and helpers of a database in it. */
export async function processesIn(folder: string): Promise<string[]> {
  const real = await realpath(folder).catch(() => folder)
  const title = `postgres: ${clusterName(join(real, 'postgres'))}: `
  return (await listProcesses())
    .map(({ command }) => command)
    .filter((command) => command.includes(`${real}/`) || command.startsWith(title))
}

/** Live members of a process group. Works on Linux only; on other systems it finds none. */
export async function processesOfGroup(group: number): Promise<string[]> {
  const found: string[] = []
  for (const name of await readdir('/proc').catch(() => [])) {
    if (!/^\d+$/.test(name)) continue
    const stat = await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '')
    const [state, , processGroup] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    if (Number(processGroup) !== group || state === 'Z' || state === 'X') continue
    const command = await readFile(`/proc/${name}/cmdline`, 'utf8').catch(() => '')
    found.push(`${name} ${command.replaceAll('\0', ' ').trim()}`)
  }
  return found
}
