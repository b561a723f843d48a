// The two rules a codebase of this kind dies without: the allowed imports, and the longest file. Beside them, the
// numbers of migrations, which two changes can break that are each right alone.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { loadMigrations } from '../src/db/migrate.ts'
import { migrationsFolder } from './kit/database.ts'
import { findBrokenRules, type SourceFile } from './kit/layers.ts'
import { trackedFiles } from './kit/tracked-files.ts'

test('every file imports only its own folder or a lower layer, and stays within the size limit', async () => {
  const files = await sourceFiles()
  assert.ok(files.length > 30, `only ${files.length} files were found`)
  assert.deepEqual(findBrokenRules(files), [])
})

test('migrations are numbered without gap or double', async () => {
  const migrations = await loadMigrations(migrationsFolder)
  assert.ok(migrations.length > 10, `only ${migrations.length} migrations were found`)
})

const line = 'export const a = 1\n'
const planted: { name: string; file: SourceFile; finds: RegExp }[] = [
  { name: 'an import from above', file: source('src/db/x.ts', `import { y } from '../api/y.ts'`), finds: /imports up/ },
  {
    name: 'an import from beside',
    file: source('src/models/x.ts', `import '../identity/y.ts'`),
    finds: /imports sideways/,
  },
  {
    name: 'an export from above',
    file: source('src/kernel/x.ts', `export { y } from '../db/y.ts'`),
    finds: /imports up/,
  },
  {
    name: 'a dynamic import from above',
    file: source('src/db/x.ts', `await import('../bin/y.ts')`),
    finds: /imports up/,
  },
  { name: 'an import of the tests', file: source('src/db/x.ts', `import '../../test/kit/y.ts'`), finds: /outside src/ },
  { name: 'a folder without a layer', file: source('src/misc/x.ts', line), finds: /no layer/ },
  { name: 'a source file of 401 lines', file: source('src/db/x.ts', line.repeat(401)), finds: /401 lines/ },
  { name: 'a test file of 601 lines', file: source('src/db/x.test.ts', line.repeat(601)), finds: /601 lines/ },
  { name: 'a forbidden name', file: source('src/db/utils.ts', line), finds: /name/ },
]

for (const { name, file, finds } of planted) {
  test(`a planted violation is found: ${name}`, () => {
    const broken = findBrokenRules([file])
    assert.equal(broken.length, 1, broken.join('\n'))
    assert.match(broken[0] ?? '', finds)
  })
}

test('files at the limits and imports downwards break no rule', () => {
  const files = [
    source('src/api/x.ts', `import { y } from '../identity/y.ts'\nimport { z } from '../kernel/z.ts'\n`),
    source('src/db/x.ts', line.repeat(400)),
    source('src/db/x.test.ts', `import '../../test/kit/database.ts'\n${line.repeat(599)}`),
  ]
  assert.deepEqual(findBrokenRules(files), [])
})

function source(path: string, text: string): SourceFile {
  return { path, text }
}

async function sourceFiles(): Promise<SourceFile[]> {
  const paths = (await trackedFiles()).filter((path) => /^(src|test|bench)\/.*\.ts$/.test(path))
  return Promise.all(paths.map(async (path) => ({ path, text: await readFile(path, 'utf8') })))
}
