// No test may fall between the tiers of test/run.ts.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { trackedFiles } from './kit/tracked-files.ts'

const inSomeTier = /^((ui\/)?src\/.*|test\/[^/]+|test\/system\/[^/]+)\.test\.ts$/

test('every test file lies where a tier finds it', async () => {
  const files = (await trackedFiles()).filter((file) => file.endsWith('.test.ts'))
  assert.ok(files.length > 150, `only ${files.length} files were found`)
  assert.deepEqual(
    files.filter((file) => !inSomeTier.test(file)),
    [],
  )
})

test('a file with cases for two tiers has no case that both tiers run', async () => {
  const found: string[] = []
  let told = 0
  for (const file of (await trackedFiles()).filter(
    (path) => inSomeTier.test(path) && !path.endsWith('tiers.test.ts'),
  )) {
    const text = await readFile(file, 'utf8')
    if (!/\b(inTest|inSystem|inTier)\b.*kit\/tiers\.ts'/.test(text)) continue
    told++
    if (/^import \{[^}]*\btest\b[^}]*\} from 'node:test'/m.test(text)) found.push(file)
  }
  assert.ok(told > 5, `only ${told} files have cases for two tiers`)
  assert.deepEqual(found, [])
})
