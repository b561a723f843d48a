import assert from 'node:assert/strict'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { test } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import { pack } from 'tar-stream'
import { backUp, createMigrated, makeBackupFolder, run } from '../../test/kit/backups.ts'
import { createArchive } from './backup-archive.ts'
import { markerName } from './backup-manifest.ts'
import { openBackup } from './open-backup.ts'

const source = await createMigrated()
await run(
  source,
  `insert into projects (id, name) select gen_random_uuid(), 'Project ' || n from generate_series(1, 500) n`,
)

async function open(file: string): Promise<void> {
  await (await openBackup(file)).close()
}

test('a file that is cut short anywhere is refused', async (t) => {
  const folder = await makeBackupFolder(t)
  const file = join(folder, 'whole.tar.gz')
  await backUp(source, file, { 'secret.key': 'the key\n' })
  await open(file)
  const whole = await readFile(file)
  const part = join(folder, 'part.tar.gz')
  for (let length = 0; length < whole.length; length += 997) {
    await writeFile(part, whole.subarray(0, length))
    await assert.rejects(open(part), /is damaged: it was cut short or altered|is not a backup that Muster made/)
  }
  await writeFile(part, whole.subarray(0, -1))
  await assert.rejects(open(part), /is damaged/)
  const text = gunzipSync(whole)
  // The last 1024 bytes of a tar are zeros that end it.
  for (const length of [512, 1024, 2048, text.length - 1536, text.length - 2048]) {
    await writeFile(part, gzipSync(text.subarray(0, length)))
    await assert.rejects(open(part), /is damaged|is not a backup/)
  }
})

test('a file in which any byte was changed or to which something was added is refused', async (t) => {
  const folder = await makeBackupFolder(t)
  const file = join(folder, 'whole.tar.gz')
  await backUp(source, file, { 'secret.key': 'the key\n' })
  const whole = await readFile(file)
  const altered = join(folder, 'altered.tar.gz')
  // The time stamp and the system in a gzip header (bytes 4 to 9) are no content.
  for (let at = 10; at < whole.length; at += 499) {
    const bytes = Buffer.from(whole)
    bytes[at] = (bytes[at] ?? 0) ^ 0x10
    await writeFile(altered, bytes)
    await assert.rejects(open(altered), /is damaged|is not a backup/, `byte ${at}`)
  }
  for (const tail of [Buffer.from('x'), Buffer.from('\0'), gzipSync('more'), whole]) {
    await writeFile(altered, Buffer.concat([whole, tail]))
    await assert.rejects(open(altered), /is damaged/)
  }
})

test('damage anywhere in a file that takes many reads is reported as damage', async (t) => {
  const folder = await makeBackupFolder(t)
  const large = await createMigrated()
  await run(
    large,
    `insert into projects (id, name)
       select gen_random_uuid(), n || ' ' || (select string_agg(md5(n || '-' || i), '') from generate_series(1, 6) i)
       from generate_series(1, 20000) n`,
  )
  const file = join(folder, 'whole.tar.gz')
  await backUp(large, file)
  await open(file)
  const whole = await readFile(file)
  assert.ok(whole.length > 1024 * 1024, 'too small to be damaged while it is still being read')
  const altered = join(folder, 'altered.tar.gz')
  const message = `${altered} is damaged: it was cut short or altered. Use another copy of the backup.`
  for (let round = 0; round < 20; round++) {
    for (const part of [0.02, 0.25, 0.5, 0.75, 0.98]) {
      const at = Math.floor(whole.length * part) + round
      const bytes = Buffer.from(whole)
      bytes.fill(0xff, at, at + 16)
      await writeFile(altered, bytes)
      await assert.rejects(open(altered), { message }, `byte ${at}`)
    }
  }
})

test('content that was changed with care, and packed again, does not fit its checksums', async (t) => {
  const folder = await makeBackupFolder(t)
  const file = join(folder, 'whole.tar.gz')
  await backUp(source, file, { 'secret.key': 'the key\n' })
  const text = gunzipSync(await readFile(file)).toString('latin1')
  const altered = join(folder, 'altered.tar.gz')
  const changes: [string, string][] = [
    ['Project 77', 'Project 78'],
    ['the key', 'the kex'],
    ['"rows": 500', '"rows": "xx'],
    ['/000001.copy', '/000009.copy'],
    ['secrets/secret.key', 'secrets/secret.kex'],
    ['manifest.json', 'manifest.jsox'],
  ]
  for (const [from, to] of changes) {
    assert.ok(text.includes(from))
    await writeFile(altered, gzipSync(Buffer.from(text.replace(from, to), 'latin1')))
    await assert.rejects(open(altered), /is damaged/, `${from} to ${to}`)
  }
})

test('a file of another kind, of another program or of a newer format is not taken for a backup', async (t) => {
  const folder = await makeBackupFolder(t)
  const file = join(folder, 'other')
  await assert.rejects(open(file), /^Error: There is no file .*other\.$/)
  await mkdir(join(folder, 'sub'))
  await assert.rejects(open(join(folder, 'sub')), /is not a file/)
  const archive = pack()
  archive.entry({ name: 'notes.txt' }, 'of another program')
  archive.finalize()
  const foreign = gzipSync(await buffer(archive as AsyncIterable<Buffer>))
  for (const bytes of [Buffer.alloc(0), Buffer.from('-- PostgreSQL database dump'), gzipSync('text'), foreign]) {
    await writeFile(file, bytes)
    await assert.rejects(open(file), /^Error: .*other is not a backup that Muster made\.$/)
  }
  const newer = join(folder, 'newer.tar.gz')
  const writer = await createArchive(newer)
  const marker = { format: 'muster-backup', version: 2, muster_version: '9.0.0', created_at: '2040-01-01' }
  await writer.add(markerName, Buffer.from(JSON.stringify(marker)))
  await writer.publish()
  await assert.rejects(open(newer), /was made by a newer Muster \(9\.0\.0\): restore it with that release/)
})
