// A process with a secret in its environment and in its data folder that starts the program of an MCP server and prints
// the program's findings. Its arguments: the data folder, then the ways to confine that it may use.
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { newId } from '../../src/kernel/id.ts'
import { silentLog } from '../../src/kernel/log.ts'
import { type ConfinedPrograms, createConfinedPrograms, type Way } from '../../src/tools/confine-programs.ts'
import { connectMcp, type McpConnection } from '../../src/tools/mcp-client.ts'
import type { Findings } from './mcp-fixture.ts'

export interface SpyReport {
  pid: number
  uid: number
  findings: Findings
  /** The findings of another project's program about the home of the first program. */
  neighbour: Findings
  variables: string
  /** Processes of the programs while they ran. */
  running: string[]
  /** Processes left after the connections were closed. */
  left: string[]
}

const [dataDir = '', ...ways] = process.argv.slice(2)
const secret = process.env.MUSTER_SECRET_KEY ?? ''
await mkdir(dataDir, { recursive: true })
await writeFile(join(dataDir, 'secret.key'), secret, { mode: 0o600 })
const programs = createConfinedPrograms({
  path: '/usr/bin:/bin',
  hidden: [dataDir],
  maySameUser: false,
  ways: ways as Way[], // named by the test
})

const fixture = { command: process.execPath, args: [new URL('./mcp-stdio.ts', import.meta.url).pathname] }
const mark = `mark-${newId()}`
const mine = await open(programs, newId())
const theirs = await open(programs, newId())
const watched = [`/proc/${process.pid}/environ`, join(dataDir, 'secret.key'), '/proc/self/root/etc/shadow']
const findings = await look(mine, watched)
const neighbour = await look(theirs, [...watched, join(findings.home, 'written')])
const variables = String(await call(mine, 'environment', {}))
await call(mine, 'spawn', {})
const running = await processesWith(mark)
await Promise.all([mine.close(), theirs.close()])
await programs.stop()
const report: SpyReport = {
  pid: process.pid,
  uid: process.getuid?.() ?? -1,
  findings,
  neighbour,
  variables,
  running,
  left: await processesWith(mark),
}
process.stdout.write(`${JSON.stringify(report)}\n`)

async function open(from: ConfinedPrograms, projectId: string): Promise<McpConnection> {
  const program = await from.start({ projectId, name: 'spy', ...fixture, env: { TOKEN: 'given', MARK: mark } })
  return connectMcp(
    { kind: 'stdio', program },
    {
      connectTimeoutMs: 30_000,
      pingTimeoutMs: 5_000,
      maxMessageBytes: 1_000_000,
      signal: new AbortController().signal,
      onTools: () => {},
    },
  )
}

async function look(connection: McpConnection, paths: readonly string[]): Promise<Findings> {
  return JSON.parse(String(await call(connection, 'spy', { paths, word: secret }))) as Findings // what the tool answers
}

function call(connection: McpConnection, name: string, args: unknown): Promise<unknown> {
  const signal = AbortSignal.timeout(30_000)
  const ids = { run_id: newId(), project_id: newId() }
  return connection.call(name, args, { ...ids, signal, key: 'key', attempt: 1, log: silentLog, emit: () => {} })
}

/** Processes are found by their environment, which children inherit. */
async function processesWith(word: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const found = await Promise.all(
    pids.map(async (pid) =>
      (await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '')).includes(word) ? pid : [],
    ),
  )
  return found.flat()
}
