// Runs the tests. The first argument chooses them:
// - `check`: types, lint, unused code, copied code, and the quick tests beside the source.
// - `all`: types, lint, the quick tests, the slow tests, and every kind of test of the whole system.
// - `system`: unused code, copied code, and the cases that `all` leaves out: `*.system.test.ts`, and the files that use
//   kit/tiers.ts.
// - `external`: the quick tests that need a database, on the server that MUSTER_TEST_SERVER_URL names. They run all our
//   SQL on an older PostgreSQL.
// - `long`: tests that take hours: random tests with many more cases. File names may follow.
// - `files`: the files that are named after it.
// One PostgreSQL serves all files; each file has databases of its own.
import { spawn } from 'node:child_process'
import { chmod, glob, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { removeOldMarks } from './kit/free-port.ts'
import { usesTestServer } from './kit/on-test-server.ts'
import { startTestServer } from './kit/test-server.ts'

const BESIDE_SOURCE = ['src/**/*.test.ts', 'ui/src/**/*.test.ts', 'test/*.test.ts']
const SYSTEM = ['test/system/*.test.ts']
/** More than the two cores of the smallest machine: a file often waits, for a server or for a lease to end. */
const FILES_AT_ONCE = 3
/** A test that hangs fails after this time. Apart from the `long` tests no test takes half of it. */
const HANGS_AFTER_MS = 300_000
const TIERS: Record<string, string> = { check: 'usual', all: 'usual', external: 'usual', system: 'system' }

const CHECKS = [
  ['tsc', '--noEmit'],
  ['tsc', '--noEmit', '-p', 'ui'],
  ['biome', 'ci', '--error-on-warnings', '.'],
] as const
/** Of code that nothing in production reaches, and of copied code; knip.jsonc and .jscpd.json hold their settings. */
const FINDERS = [['knip', '--production'], ['jscpd']] as const

const CHECKS_OF: Record<string, readonly (readonly [string, ...string[]])[]> = {
  check: [...CHECKS, ...FINDERS],
  system: FINDERS,
}

const [mode = 'all', ...patterns] = process.argv.slice(2)
process.exitCode = await main()

async function main(): Promise<number> {
  if (mode === 'long') return runLong()
  if (patterns.length > 0) return runTests(patterns)
  if (mode === 'external') return runExternal()
  for (const [command, ...args] of CHECKS_OF[mode] ?? CHECKS) {
    const code = await run(`node_modules/.bin/${command}`, args)
    if (code !== 0) return code
    process.stdout.write(`${command}: clean\n`)
  }
  return runTests(mode === 'check' ? BESIDE_SOURCE : [...BESIDE_SOURCE, ...SYSTEM])
}

async function runExternal(): Promise<number> {
  if (!process.env.MUSTER_TEST_SERVER_URL) throw new Error('Name the server in MUSTER_TEST_SERVER_URL.')
  return runTests([...BESIDE_SOURCE, 'test/system/external.test.ts'])
}

async function runLong(): Promise<number> {
  process.stdout.write(
    'Random tests name their seeds. To go on from one: MUSTER_TEST_SEED=<seed> npm run test:long -- <file>\n',
  )
  return runTests(patterns.length > 0 ? patterns : [...BESIDE_SOURCE, ...SYSTEM], { MUSTER_TEST_LONG: '1' })
}

async function isLeftOut(file: string): Promise<boolean> {
  if (mode === 'files') return false
  if (mode === 'long') return !(await canBeLong(file))
  if (mode === 'system') return !file.endsWith('.system.test.ts') && !(await hasTiers(file))
  if (file.endsWith('.system.test.ts')) return true
  if (mode !== 'all' && file.endsWith('.slow.test.ts')) return true
  return mode === 'external' && !(await usesTestServer(file))
}

/** These have more cases, or each page in more looks, if they are run for long. */
async function canBeLong(file: string): Promise<boolean> {
  return /\/kit\/(how-many|console)\.ts'/.test(await readFile(file, 'utf8'))
}

/** A file without a case for the second tier is left out whole: its hooks would start servers for nothing. */
async function hasTiers(file: string): Promise<boolean> {
  const imported = /import \{([^}]*)\} from '[^']*\/kit\/tiers\.ts'/.exec(await readFile(file, 'utf8'))?.[1] ?? ''
  return /\b(inBoth|inSystem|inTier|isSystem)\b/.test(imported)
}

async function runTests(globs: readonly string[], given: Record<string, string> = {}): Promise<number> {
  const files: string[] = []
  for await (const file of glob(globs)) if (!(await isLeftOut(file))) files.push(file)
  if (files.length === 0) throw new Error(`No test file matches ${globs.join(' ')}`)
  await removeOldMarks()
  const server = process.env.MUSTER_TEST_SERVER_URL ? null : await startTestServer()
  // Hundreds of processes read the same source; the first process compiles it for all. Servers of other users read it
  // too.
  const compiled = await mkdtemp(join(tmpdir(), 'muster-test-compiled-'))
  await chmod(compiled, 0o755)
  try {
    const environment = {
      MUSTER_TEST_TIER: TIERS[mode] ?? 'all',
      ...given,
      ...(server ? { MUSTER_TEST_SERVER_URL: server.url } : {}),
      NODE_COMPILE_CACHE: compiled,
    }
    const limits = mode === 'long' ? [] : [`--test-timeout=${HANGS_AFTER_MS}`, '--import=./test/kit/file-limit.ts']
    const flags = ['--test', `--test-concurrency=${FILES_AT_ONCE}`, '--import=./src/bin/own-imports.ts', ...limits]
    return await run(process.execPath, [...flags, ...files.sort()], environment)
  } finally {
    await server?.stop()
    await rm(compiled, { recursive: true, force: true })
  }
}

function run(command: string, args: readonly string[], environment: Record<string, string> = {}): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: 'inherit', env: { ...process.env, ...environment } })
    child.once('error', reject)
    child.once('exit', (code, signal) => resolve(code ?? (signal ? 1 : 0)))
  })
}
