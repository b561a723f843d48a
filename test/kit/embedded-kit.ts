import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { statSync } from 'node:fs'
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import pg from 'pg'
import {
  createEmbeddedServer,
  type EmbeddedServer,
  type EmbeddedServerOptions,
} from '../../src/db/embedded/embedded-server.ts'
import { commandOf, listProcesses } from '../../src/db/embedded/process-table.ts'
import { silentLog } from '../../src/kernel/log.ts'
import { until } from './until.ts'

// The common parts of tests of the embedded server. Every folder made here is removed after its test, with any server
// in it.

const childScript = fileURLToPath(new URL('embedded-child.ts', import.meta.url))

export interface TestChild {
  readonly process: ChildProcess
  /** The line that the child printed. */
  readonly said: { outcome?: string; url?: string; ms?: number; error?: string }
  kill(signal: NodeJS.Signals): Promise<void>
}

export const nobody = { uid: 65_534, gid: 65_534 }
export const isRoot = process.getuid?.() === 0

/** The reason why no child can run as another user, or null. Other users cannot reach a checkout in a closed folder. */
export const cannotRunAsOthers: string | null = isRoot
  ? isOpenToAll(process.execPath) && isOpenToAll(fileURLToPath(import.meta.url))
    ? null
    : 'the checkout lies under a folder that is closed to other users'
  : 'only root can run a child as somebody else'

function isOpenToAll(path: string): boolean {
  const folder = dirname(path)
  return folder === path || ((statSync(folder).mode & 0o001) !== 0 && isOpenToAll(folder))
}

export interface TestFolder {
  /** Every user may enter the folder, like /srv or /var/lib. */
  readonly path: string
  /** These run before the folder is removed; node:test itself runs hooks in the order of their registration. */
  defer(action: () => Promise<unknown>): void
}

export async function makeFolder(t: TestContext): Promise<TestFolder> {
  const path = await mkdtemp(join(tmpdir(), 'muster-embedded-'))
  await chmod(path, 0o755)
  const deferred: (() => Promise<unknown>)[] = []
  t.after(async () => {
    for (const action of deferred.reverse()) await action()
    const left = await serversIn(path)
    for (const pid of left) process.kill(pid, 'SIGQUIT')
    await until(async () => (await serversIn(path)).length === 0, 'no server is left in the folder')
    await rm(path, { recursive: true, force: true, maxRetries: 3 })
  })
  return { path, defer: (action) => deferred.push(action) }
}

/** The server is stopped before its folder is removed. */
export function makeServer(
  folder: TestFolder,
  options: Partial<EmbeddedServerOptions> = {},
): EmbeddedServer & { readonly dataDir: string } {
  const dataDir = options.dataDir ?? folder.path
  const server = createEmbeddedServer({ log: silentLog, ...options, dataDir })
  folder.defer(() => server.stop())
  return Object.assign(server, { dataDir })
}

/** Main processes of PostgreSQL servers on data under the folder. */
export async function serversIn(folder: string): Promise<number[]> {
  return (await listProcesses())
    .filter(({ command }) => command.includes(`/postgres -D ${folder}`))
    .map(({ pid }) => pid)
}

export async function startChild(
  folder: TestFolder,
  options: Record<string, unknown> = {},
  user: { uid?: number; gid?: number } = {},
): Promise<TestChild> {
  const { child, kill, said } = spawnChild(folder, options, user)
  return { process: child, kill, said: await said }
}

/** Starts the child without waiting for its output. */
export function spawnChild(
  folder: TestFolder,
  options: Record<string, unknown> = {},
  user: { uid?: number; gid?: number } = {},
): { child: ChildProcess; said: Promise<TestChild['said']>; kill: TestChild['kill'] } {
  const child = spawn(process.execPath, [childScript, JSON.stringify({ dataDir: folder.path, ...options })], {
    ...user,
    cwd: '/',
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const ended = new Promise<void>((resolve) => {
    for (const event of ['exit', 'error']) child.once(event, () => resolve())
  })
  const kill = async (signal: NodeJS.Signals): Promise<void> => {
    child.kill(signal)
    await ended
  }
  folder.defer(() => kill('SIGKILL'))
  const line = once(createInterface({ input: child.stdout }), 'line').then(([text]) => JSON.parse(text))
  // A child that could not be started prints nothing, so the test must not wait for its line.
  const silence = new Promise<never>((_resolve, reject) => {
    child.once('close', () => reject(new Error('the child ended without a word')))
    child.once('error', reject)
  })
  silence.catch(() => undefined)
  const said = Promise.race([line, silence])
  // A child that is killed before it prints its line is no error of the test.
  said.catch(() => undefined)
  return { child, said, kill }
}

export async function query(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 20_000 })
  client.on('error', () => undefined)
  try {
    await client.connect()
    return (await client.query(sql)).rows
  } finally {
    await client.end().catch(() => undefined)
  }
}

export async function pidOfServer(dataDir: string): Promise<number> {
  return Number((await readFile(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8')).split('\n')[0])
}

/** True while any process works on this data: the main process, or a session that it left behind. */
export async function isAnythingLeft(pids: number[]): Promise<boolean> {
  const commands = await Promise.all(pids.map(commandOf))
  return commands.some((command) => command?.includes('postgres'))
}

/** The main process and its children. */
export async function familyOf(pid: number): Promise<number[]> {
  const { stdout } = await promisify(execFile)('ps', ['-ax', '-o', 'pid=', '-o', 'ppid='])
  const pairs = stdout.split('\n').map((line) => line.trim().split(/\s+/).map(Number))
  return [pid, ...pairs.flatMap(([child, parent]) => (child !== undefined && parent === pid ? [child] : []))]
}
