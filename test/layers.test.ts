// The rules that keep the code readable: allowed imports, the longest file and function, no name with two meanings and no
// circles of imports. Also the numbers of migrations, which two changes can break together although each change alone is
// right.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { loadMigrations } from '../src/db/migrate.ts'
import { migrationsFolder } from './kit/database.ts'
import {
  findBrokenRules,
  findCircles,
  findLongFunctions,
  findNamesExportedTwice,
  type SourceFile,
} from './kit/layers.ts'
import { trackedFiles } from './kit/tracked-files.ts'

test('every file imports only its own folder or a lower layer, and stays within the size limit', async () => {
  const files = await sourceFiles()
  assert.ok(files.length > 30, `only ${files.length} files were found`)
  assert.deepEqual(findBrokenRules(files), [])
})

test('the imports have no circle, types included', async () => {
  const files = (await sourceFiles()).filter(({ path }) => path.startsWith('src/'))
  assert.ok(files.length > 100, `only ${files.length} files were found`)
  assert.deepEqual(findCircles(files), [])
})

test('no function has more than 100 lines', async () => {
  assert.deepEqual(findLongFunctions(await sourceFiles()), [])
})

test('no name is exported by two files', async () => {
  assert.deepEqual(findNamesExportedTwice(await sourceFiles()), [])
})

test('only bin/config.ts reads the environment, and bin/muster.ts the name of the data folder', async () => {
  const files = (await sourceFiles()).filter(({ path }) => path.startsWith('src/') && !path.endsWith('.test.ts'))
  const readers = files.filter(({ text }) => /\bprocess\.env\b/.test(text)).map(({ path }) => path)
  assert.deepEqual(readers.toSorted(), ['src/bin/config.ts', 'src/bin/muster.ts'])
  const entry = files.find(({ path }) => path === 'src/bin/muster.ts')?.text ?? ''
  assert.deepEqual(entry.match(/\bprocess\.env\b[.\w]*/g), ['process.env.MUSTER_DATA_DIR'])
})

test('migrations are numbered without gap or double', async () => {
  const migrations = await loadMigrations(migrationsFolder)
  assert.ok(migrations.length > 10, `only ${migrations.length} migrations were found`)
})

const line = 'export const a = 1\n'
const planted: { name: string; file: SourceFile; finds: RegExp }[] = [
  { name: 'an import from above', file: source('src/db/x.ts', `import { y } from '../api/y.ts'`), finds: /imports up/ },
  {
    name: 'an import from a page by a part of the console',
    file: source('ui/src/parts/x.tsx', `import { y } from '../pages/run/y.tsx'`),
    finds: /imports up/,
  },
  {
    name: 'an import of another page of the console',
    file: source('ui/src/pages/run/x.tsx', `import { y } from '../runs/y.tsx'`),
    finds: /imports sideways/,
  },
  {
    name: 'an import of the server by the console',
    file: source('ui/src/pages/run/x.tsx', `import type { Y } from '../../../../src/runs/y.ts'`),
    finds: /outside ui/,
  },
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
  {
    name: 'an import from a room above',
    file: source('src/flows/definition/x.ts', `import { y } from '../execution/y.ts'`),
    finds: /imports up from definition to execution: /,
  },
  {
    name: 'a type from a room above',
    file: source('src/flows/history/x.ts', `import type { Y } from '../alerts/y.ts'`),
    finds: /imports up from history to alerts: /,
  },
  {
    name: 'an import from a room above, by a file further in',
    file: source('src/flows/machine/patterns/x.ts', `import { y } from '../../pools/y.ts'`),
    finds: /imports up from machine to pools: /,
  },
  {
    name: 'an import from a room beside',
    file: source('src/flows/pools/x.ts', `import { y } from '../pipeline/y.ts'`),
    finds: /imports sideways from pools to pipeline: /,
  },
  {
    name: 'an import from a room beside, in the lowest row',
    file: source('src/flows/recommend/x.ts', `export type { Y } from '../templates/y.ts'`),
    finds: /imports sideways from recommend to templates: /,
  },
  {
    name: 'an import of the routes by the HTTP edge',
    file: source('src/api/http/x.ts', `import { y } from '../routes/y.ts'`),
    finds: /imports up from http to routes: /,
  },
  {
    name: 'an import of the server by a route',
    file: source('src/api/routes/x.ts', `import type { App } from '../server.ts'`),
    finds: /imports up from routes to \.: /,
  },
  { name: 'a file in no room', file: source('src/flows/x.ts', line), finds: /the folder has rooms/ },
  { name: 'a test in no room', file: source('src/flows/x.test.ts', line), finds: /the folder has rooms/ },
  {
    name: 'a room without a row',
    file: source('src/flows/misc/x.ts', line),
    finds: /the room misc has no row in flows/,
  },
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

test('imports within a room and from rooms below break no rule', () => {
  const files = [
    source(
      'src/flows/execution/x.ts',
      `import { y } from './y.ts'\nimport type { Z } from '../machine/patterns/z.ts'\n`,
    ),
    source('src/flows/machine/x.ts', `import { y } from './patterns/y.ts'\nimport { z } from '../../kernel/z.ts'\n`),
    source('src/flows/recommend/x.test.ts', `import { y } from '../definition/y.ts'\n`),
  ]
  assert.deepEqual(findBrokenRules(files), [])
})

const body = (lines: number): string => '  f()\n'.repeat(lines)
for (const { name, text, at } of [
  { name: 'a function', text: `export function f(): void {\n${body(99)}}\n`, at: 1 },
  { name: 'an async arrow function', text: `\nconst f = async () => {\n${body(99)}}\n`, at: 2 },
  { name: 'a method', text: `const a = {\n  f(): void {\n${body(99)}  },\n}\n`, at: 2 },
  { name: 'a method of a class', text: `class A {\n  f(): void {\n${body(99)}  }\n}\n`, at: 2 },
]) {
  test(`a planted function of 101 lines is found: ${name}`, () => {
    const found = findLongFunctions([source('src/db/x.ts', text)])
    assert.deepEqual(found, [`src/db/x.ts:${at} is a function of 101 lines; the limit is 100`])
  })
}

test('a function of 100 lines, and a longer one of a test, are not too long', () => {
  const files = [
    source('src/db/x.ts', `function f(): void {\n${body(98)}}\n`),
    source('src/db/x.test.ts', `function f(): void {\n${body(200)}}\n`),
  ]
  assert.deepEqual(findLongFunctions(files), [])
})

test('a planted name that two files export is found, types and names passed on included', () => {
  const files = [
    source('src/db/a.ts', 'export const one = 1\nexport interface Two {}\nexport const alone = 1\n'),
    source(
      'src/db/b.ts',
      `export async function one() {}\nexport {\n  type Two,\n  own as renamed,\n} from './a.ts'\n`,
    ),
    source('src/db/c.ts', 'export type renamed = 1\n'),
    source('src/db/c.test.ts', 'export const alone = 1\n'),
  ]
  assert.deepEqual(findNamesExportedTwice(files), [
    'one is exported by src/db/a.ts and src/db/b.ts',
    'Two is exported by src/db/a.ts and src/db/b.ts',
    'renamed is exported by src/db/b.ts and src/db/c.ts',
  ])
})

test('a planted circle is found, types included, and named file by file', () => {
  const files = [
    source('src/flows/pools/a.ts', `import type { B } from './b.ts'`),
    source('src/flows/pools/b.ts', `export { c } from '../machine/c.ts'`),
    source('src/flows/machine/c.ts', `import '../pools/a.ts'`),
    source('src/flows/pools/d.ts', `import './a.ts'\nimport type { Own } from './d.ts'`),
  ]
  assert.deepEqual(findCircles(files), [
    'src/flows/pools/a.ts → src/flows/pools/b.ts → src/flows/machine/c.ts → src/flows/pools/a.ts',
    'src/flows/pools/d.ts → src/flows/pools/d.ts',
  ])
})

test('two ways to one file are no circle', () => {
  const files = [
    source('src/flows/pools/a.ts', `import './b.ts'\nimport './c.ts'`),
    source('src/flows/pools/b.ts', `import './d.ts'`),
    source('src/flows/pools/c.ts', `import './d.ts'`),
    source('src/flows/pools/d.ts', `import '../../kernel/e.ts'`),
  ]
  assert.deepEqual(findCircles(files), [])
})

function source(path: string, text: string): SourceFile {
  return { path, text }
}

async function sourceFiles(): Promise<SourceFile[]> {
  const paths = (await trackedFiles()).filter((path) => /^(src|test|bench|ui)\/.*\.tsx?$/.test(path))
  return Promise.all(paths.map(async (path) => ({ path, text: await readFile(path, 'utf8') })))
}
