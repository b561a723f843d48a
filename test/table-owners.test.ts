// A table is written by the folder that owns it, and read from there upwards. The exceptions are listed with their reasons.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { rowOfFolder } from './kit/layers.ts'
import { OTHER_WRITERS, READ_FROM_ABOVE, TABLE_OWNERS } from './kit/table-owners.ts'
import { trackedFiles } from './kit/tracked-files.ts'

interface Use {
  path: string
  folder: string
  table: string
  isWrite: boolean
}

const names = Object.keys(TABLE_OWNERS).toSorted((a, b) => b.length - a.length)
const USES = new RegExp(
  `\\b(insert into|update|delete from|from|join)\\s+(${names.join('|').replaceAll('.', '\\.')})\\b(?=\\s|\\)|,|$)`,
  'gm',
)

/** The tables that the SQL in a file names; comments name none. */
function usesIn(path: string, text: string): Use[] {
  const folder = path.split('/')[1] ?? ''
  const templates = [...text.matchAll(/`(?:[^`\\]|\\.)*`|'(?:[^'\\\n]|\\.)*'/g)].map(([found]) => found)
  return templates
    .filter((found) => /\b(select|insert into|update|delete from|from|join)\b/.test(found))
    .flatMap((found) =>
      [...found.matchAll(USES)].map(([, verb = '', table = '']) => {
        return { path, folder, table, isWrite: verb !== 'from' && verb !== 'join' }
      }),
    )
}

function brokenRules(uses: readonly Use[]): { broken: string[]; unneeded: string[] } {
  const needed = new Set<string>()
  const broken: string[] = []
  for (const { path, folder, table, isWrite } of uses) {
    const owner = TABLE_OWNERS[table] ?? ''
    if (folder === owner) continue
    if (!isWrite && rowOfFolder(folder) >= rowOfFolder(owner)) continue
    const key = `${folder} ${table}`
    if (key in (isWrite ? OTHER_WRITERS : READ_FROM_ABOVE)) needed.add(key)
    else broken.push(`${path} ${isWrite ? 'writes' : 'reads'} ${table}, which belongs to ${owner}`)
  }
  const listed = [...Object.keys(OTHER_WRITERS), ...Object.keys(READ_FROM_ABOVE)]
  return { broken, unneeded: listed.filter((key) => !needed.has(key)) }
}

async function usesOfSource(): Promise<Use[]> {
  const paths = (await trackedFiles()).filter((path) => /^src\/.*\.ts$/.test(path) && !path.endsWith('.test.ts'))
  const files = await Promise.all(paths.map(async (path) => usesIn(path, await readFile(path, 'utf8'))))
  return files.flat()
}

test('every table that a migration makes has an owner', async () => {
  const paths = (await trackedFiles()).filter((path) => path.startsWith('migrations/'))
  const texts = await Promise.all(paths.map((path) => readFile(path, 'utf8')))
  const made = texts.flatMap((text) => [...text.matchAll(/^create table ([\w.]+)/gm)].map(([, name = '']) => name))
  assert.ok(made.length > 40, `only ${made.length} tables were found`)
  assert.deepEqual(
    made.filter((name) => !(name in TABLE_OWNERS)),
    [],
  )
})

test('a table is written by its owner, and read by its own and higher rows, except for listed uses', async () => {
  assert.deepEqual(brokenRules(await usesOfSource()), { broken: [], unneeded: [] })
})

test('a planted use of another folder’s table is found, and a comment is no use', () => {
  const found = (path: string, text: string) => brokenRules(usesIn(path, text)).broken.length
  assert.equal(found('src/models/x.ts', 'db.query(`update agents set name = $1`)'), 1)
  assert.equal(found('src/kernel/x.ts', "db.query('select id from tasks where id = $1')"), 1)
  assert.equal(found('src/evals/x.ts', 'db.query(`select id from tasks t where id = $1`)'), 0)
  assert.equal(found('src/models/x.ts', '// Updates agents: update agents set name.'), 0)
})
