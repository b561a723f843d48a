// The real command as a real child process: started, asked over HTTP, killed. Every process and folder made here is
// removed after its test, also if the test failed or the test process itself ended early.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beginningOf, isEndless } from './endless.ts'
import { freePort } from './free-port.ts'
import { processesIn, processesOfGroup, serversUnder } from './processes-left.ts'
import { until } from './until.ts'

/** A test, or `{ after }` of node:test for the things that a whole file shares. */
export interface Cleanup {
  after(clean: () => Promise<void>): void
}

export interface MusterOptions {
  /** By default a new folder, inside a folder that every user may enter. */
  dataDir?: string
  databaseUrl?: string
  port?: number
  user?: { uid: number; gid: number }
  env?: Record<string, string>
  /** The command to run; by default this Node with src/bin/muster.ts. */
  command?: readonly string[]
  cwd?: string
}

export interface Exit {
  code: number | null
  signal: NodeJS.Signals | null
}

export interface Answer<Body> {
  status: number
  headers: Headers
  text: string
  body: Body
}

export interface Call {
  /** The admin token by default; null sends none. */
  token?: string | null
  cookie?: string
  body?: unknown
  headers?: Record<string, string>
}

export interface Muster {
  readonly pid: number
  readonly port: number
  readonly url: string
  readonly dataDir: string
  readonly exited: Promise<Exit>
  isRunning(): boolean
  stdout(): string
  stderr(): string
  adminToken(): string
  /** The link as the start printed it. */
  signInLink(): string
  /** Sends the signal and waits for the end. */
  kill(signal: NodeJS.Signals): Promise<Exit>
  signal(signal: NodeJS.Signals): void
  /** Sends SIGTERM; fails unless that ends every part of the server cleanly, with exit code 0. */
  stop(): Promise<void>
  call<Body = Record<string, unknown>>(route: string, options?: Call): Promise<Answer<Body>>
  /** The command lines of this server, its database and every other live process that it started. */
  processes(): Promise<string[]>
}

export const repository = fileURLToPath(new URL('../../', import.meta.url))
const entry = join(repository, 'src/bin/muster.ts')
const READY_WITHIN_MS = 120_000
const ANSWERED_WITHIN_MS = 20_000
const STOPPED_WITHIN_MS = 45_000
const ENDED_WITHIN_MS = 120_000

const living = new Set<Muster>()
const folders = new Set<string>()

/** Starts a server and returns when /readyz answers 200 and the start has printed all its lines. */
export async function startMuster(t: Cleanup, options: MusterOptions = {}): Promise<Muster> {
  const muster = await spawnMuster(t, ['start'], options)
  let isOver = false
  void muster.exited.then(() => {
    isOver = true
  })
  // The output of a start ends with this line, a moment after /readyz answers 200.
  const hasSaidSo = (): boolean => muster.stdout().includes('Stop with Ctrl-C')
  let said: number | null = null
  const hasStarted = async (): Promise<boolean> => {
    if (isOver) return true
    said = await readiness(muster)
    return said === 200 && hasSaidSo()
  }
  const soFar = (): string => `the server is ready (/readyz: ${said}):\n${muster.stdout()}${muster.stderr()}`
  await until(hasStarted, soFar, READY_WITHIN_MS)
  assert.ok(!isOver, `the server ended instead of starting:\n${muster.stdout()}${muster.stderr()}`)
  return muster
}

/** A server that is ready says 503 now and then if the machine is overloaded, so callers ask until it is ready. */
export async function isReady(muster: Muster): Promise<boolean> {
  return (await readiness(muster)) === 200
}

/** The status of /readyz, or null if there is no answer. */
export async function readiness(muster: Muster): Promise<number | null> {
  return muster.call('GET /readyz', { token: null }).then(
    (answer) => answer.status,
    () => null,
  )
}

/** Runs a command of muster to its end. */
export async function runMuster(t: Cleanup, args: readonly string[], options: MusterOptions = {}) {
  const muster = await spawnMuster(t, args, options)
  const exit = await within(muster.exited, ENDED_WITHIN_MS, () => {
    return `muster ${args.join(' ')} does not end:\n${muster.stdout()}${muster.stderr()}`
  })
  return { ...exit, stdout: muster.stdout(), stderr: muster.stderr(), muster }
}

/** Starts the command with these arguments without waiting. */
export async function spawnMuster(t: Cleanup, args: readonly string[], options: MusterOptions = {}): Promise<Muster> {
  const dataDir = options.dataDir ?? join(await makeFolder(t), 'data')
  const port = options.port ?? (await freePort())
  const [file = '', ...before] = options.command ?? [process.execPath, entry]
  const child = spawn(file, [...before, ...args], {
    cwd: options.cwd ?? '/',
    env: environment(options, dataDir, port),
    stdio: ['ignore', 'pipe', 'pipe'],
    // The server has a process group of its own, by which processes that it leaves behind are found.
    detached: true,
    ...options.user,
  })
  const muster = describe(child, dataDir, port, options)
  sweepWhenThisProcessEnds()
  living.add(muster)
  void muster.exited.then(() => living.delete(muster))
  t.after(() => endForGood(muster))
  return muster
}

/** Every user may enter the folder, like /srv. It is removed after the test, with every process that works in it. */
export async function makeFolder(t: Cleanup): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'muster-system-'))
  await chmod(folder, 0o755)
  folders.add(folder)
  t.after(async () => {
    for (const muster of living) if (muster.dataDir.startsWith(folder)) await endForGood(muster)
    await endServersUnder(folder)
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
    folders.delete(folder)
  })
  return folder
}

export async function endServersUnder(folder: string): Promise<void> {
  await until(async () => {
    const pids = await serversUnder(folder)
    for (const pid of pids) killIfThere(pid, 'SIGQUIT')
    return pids.length === 0 && (await processesIn(folder)).length === 0
  }, `no process is left in ${folder}`)
}

/** The pid of the embedded database's main process. */
export async function postmasterPid(muster: Muster): Promise<number> {
  const place = await readFile(join(muster.dataDir, 'postgres.location'), 'utf8').catch(() => null)
  const cluster = place === null ? join(muster.dataDir, 'postgres') : join(place.trim(), 'data')
  return Number((await readFile(join(cluster, 'postmaster.pid'), 'utf8')).split('\n')[0])
}

function describe(child: ChildProcess, dataDir: string, port: number, options: MusterOptions): Muster {
  let stdout = ''
  let stderr = ''
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  const exited = new Promise<Exit>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => resolve({ code, signal }))
  })
  const url = `http://127.0.0.1:${port}`
  const pid = child.pid ?? 0
  const muster: Muster = {
    pid,
    port,
    url,
    dataDir,
    exited,
    isRunning: () => child.exitCode === null && child.signalCode === null,
    stdout: () => stdout,
    stderr: () => stderr,
    adminToken: () => options.env?.MUSTER_ADMIN_TOKEN ?? readFileSync(join(dataDir, 'admin.token'), 'utf8').trim(),
    signInLink: () =>
      /http:\S+\/sign-in\/\S+/.exec(stdout)?.[0] ?? assert.fail(`no sign-in link was printed:\n${stdout}${stderr}`),
    signal: (signal) => void child.kill(signal),
    kill: async (signal) => {
      child.kill(signal)
      return within(exited, STOPPED_WITHIN_MS, () => `${signal} did not end the server:\n${stderr}`)
    },
    stop: async () => {
      const exit = await muster.kill('SIGTERM')
      assert.deepEqual(exit, { code: 0, signal: null }, `SIGTERM ended it with another exit:\n${stdout}${stderr}`)
      assert.doesNotMatch(stderr, /took too long to stop|did not stop cleanly/)
    },
    call: (route, call = {}) => request(muster, route, call),
    processes: async () => [...(await processesOfGroup(pid)), ...(await processesIn(dataDir))],
  }
  return muster
}

async function request<Body>(muster: Muster, route: string, options: Call): Promise<Answer<Body>> {
  const [method = '', path = ''] = route.split(' ')
  const token = options.token === undefined && options.cookie === undefined ? muster.adminToken() : options.token
  const answer = await fetch(new URL(path, muster.url), {
    method,
    redirect: 'manual',
    signal: AbortSignal.timeout(ANSWERED_WITHIN_MS),
    headers: {
      ...(token ? { authorization: `Bearer ${token}` } : {}),
      ...(options.cookie ? { cookie: options.cookie, origin: muster.url } : {}),
      ...(options.body === undefined ? {} : { 'content-type': 'application/json' }),
      ...options.headers,
    },
    ...(options.body === undefined ? {} : { body: asText(options.body) }),
  })
  const text = isEndless(route) ? await beginningOf(answer.body) : await answer.text()
  const isJson = answer.headers.get('content-type')?.startsWith('application/json')
  // The caller says what it expects, and asserts it.
  return { status: answer.status, headers: answer.headers, text, body: (isJson ? JSON.parse(text) : null) as Body }
}

/** A string is sent unchanged, so that a test can send invalid JSON. */
const asText = (body: unknown): string => (typeof body === 'string' ? body : JSON.stringify(body))

/** The child inherits no variables, because those of the person who runs the tests could change the results. */
function environment(options: MusterOptions, dataDir: string, port: number): Record<string, string> {
  return {
    PATH: process.env.PATH ?? '/usr/bin:/bin',
    HOME: join(dataDir, '..'),
    PORT: String(port),
    MUSTER_DATA_DIR: dataDir,
    MUSTER_FIND_OLLAMA: 'off',
    // The cache halves the time of a start. A server that cannot write the cache works without it.
    NODE_COMPILE_CACHE: compileCache(),
    ...(options.databaseUrl === undefined ? {} : { DATABASE_URL: options.databaseUrl }),
    ...options.env,
  }
}

async function endForGood(muster: Muster): Promise<void> {
  if (!muster.isRunning()) return
  // The whole group is killed, so that a running initdb is killed too.
  killIfThere(-muster.pid, 'SIGKILL')
  await muster.exited
}

function killIfThere(pid: number, signal: NodeJS.Signals): void {
  try {
    if (pid !== 0) process.kill(pid, signal)
  } catch {
    // The process is gone already.
  }
}

async function within<Value>(promise: Promise<Value>, ms: number, complaint: () => string): Promise<Value> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error(complaint())), ms)
  try {
    return await Promise.race([promise, late.promise])
  } finally {
    clearTimeout(timer)
  }
}

let cacheFolder: string | null = null

function compileCache(): string {
  // All test files share one cache folder, if there is one.
  if (process.env.NODE_COMPILE_CACHE) return process.env.NODE_COMPILE_CACHE
  if (cacheFolder === null) {
    cacheFolder = mkdtempSync(join(tmpdir(), 'muster-system-cache-'))
    chmodSync(cacheFolder, 0o755)
    folders.add(cacheFolder)
  }
  return cacheFolder
}

let isSweeping = false

function sweepWhenThisProcessEnds(): void {
  if (isSweeping) return
  isSweeping = true
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
  process.once('exit', () => {
    for (const muster of living) killIfThere(-muster.pid, 'SIGKILL')
    for (const folder of folders) {
      try {
        const pidFile = join(folder, 'data/postgres/postmaster.pid')
        if (existsSync(pidFile)) killIfThere(Number(readFileSync(pidFile, 'utf8').split('\n')[0]), 'SIGQUIT')
        rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
      } catch {
        // The other folders must still be removed.
      }
    }
  })
}
