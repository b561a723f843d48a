// B7: every example of the pages about flows, app modules and tools is tried, in a real server with the demo project.
// The commands are those of the pages, run by a shell.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { copyFile, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { loadApp } from '../../src/app-modules/load-app.ts'
import type { FlowRun } from '../../src/kernel/flow-run.ts'
import { silentLog } from '../../src/kernel/log.ts'
import type { Run } from '../../src/kernel/run.ts'
import { atEnd } from '../kit/at-end.ts'
import { createUnusedDatabase } from '../kit/database.ts'
import { type Muster, makeFolder, repository, startMuster } from '../kit/process.ts'
import { until } from '../kit/until.ts'

const wholeFile = { after: atEnd }
const folder = await makeFolder(wholeFile)
const env = { MUSTER_ADMIN_TOKEN: 'one-token-for-all-servers', MUSTER_SECRET_KEY: 'one-key-for-all-servers' }
const options = { databaseUrl: await createUnusedDatabase(), cwd: folder, env: { ...env, MUSTER_APP: 'my-app.ts' } }

const page = (name: string): Promise<string> => readFile(join(repository, 'docs', name), 'utf8')
const blocks = (text: string, language: string): string[] =>
  [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm'))].map(([, block = '']) => block)
const part = (text: string, heading: string): string =>
  text.split(/^(?=## )/m).find((each) => each.startsWith(`## ${heading}\n`)) ?? assert.fail(`no part ${heading}`)

/** Runs commands of a page; what they print is the answer. */
async function shell(muster: Muster, ...commands: string[]): Promise<string> {
  const script = commands
    .join('\n')
    .replaceAll('$(npm run --silent muster -- keys admin)', muster.adminToken())
    .replaceAll('http://127.0.0.1:8080', muster.url)
  const { stdout } = await promisify(execFile)('bash', ['-c', `set -e\n${script}`], { timeout: 60_000 })
  return stdout
}

const appModules = await page('app-modules.md')
const first = part(appModules, 'A first module')
const [source = ''] = blocks(first, 'ts')
const [, setUp = '', ...others] = blocks(first, 'sh')

async function ended(muster: Muster, path: string, id: string): Promise<FlowRun> {
  const read = async (): Promise<FlowRun> => (await muster.call<FlowRun>(`GET ${path}/flow-runs/${id}`)).body
  await until(async () => (await read()).completed_at !== null, 'the flow run has ended', 60_000)
  return read()
}

async function projectCalled(muster: Muster, name: string): Promise<string> {
  const { body } = await muster.call<{ items: { id: string; name: string }[] }>('GET /api/projects')
  return `/api/projects/${body.items.find((each) => each.name === name)?.id ?? assert.fail(`no project ${name}`)}`
}

test('B7 docs/app-modules.md: the module starts, its flow and its agent do what the page says', async (t) => {
  await writeFile(join(folder, 'my-app.ts'), source)
  const muster = await startMuster(t, options)
  await shell(muster, setUp)
  const bakery = await projectCalled(muster, 'Bakery')
  const { body } = await muster.call<{ items: FlowRun[] }>(`GET ${bakery}/flow-runs`)
  const run = await ended(muster, bakery, body.items[0]?.id ?? assert.fail('no flow run'))
  assert.equal(run.status, 'completed', JSON.stringify(run))
  const results = run.results as Record<string, unknown> // small, so it is not truncated
  assert.deepEqual(results.list, [
    { bread: 'rye', count: 8 },
    { bread: 'wheat', count: 0 },
  ])
  assert.equal(run.output, results.note)
  const runs = await muster.call<{ items: { id: string }[] }>(`GET ${bakery}/runs`)
  const steps = await muster.call(`GET ${bakery}/runs/${runs.body.items[0]?.id}/steps`)
  assert.match(steps.text, /"name":"stock_of".*"left":4/)
  const again = await shell(muster, setUp, ...others)
  assert.match(again, /"name":"stock_of","source":"app"/)
  assert.match(again, /"status":"completed"[^\n]*$/)
  await muster.stop()
})

/** The start of the module with the agents of these parts among its own. */
async function startWith(t: TestContext, ...parts: string[]): Promise<Muster> {
  const agents = parts.map((each) => blocks(each, 'ts')[0] ?? assert.fail('a part has no agent')).join('')
  await writeFile(join(folder, 'my-app.ts'), source.replace('agents: {\n', `agents: {\n${agents}`))
  return startMuster(t, options)
}

test('B7 docs/app-modules.md: a flow on a schedule, and its cost', async (t) => {
  const scheduled = part(appModules, 'A flow on a schedule')
  const muster = await startWith(t, scheduled)
  const [tryIt = '', lookInto = '', price = ''] = blocks(scheduled, 'sh')
  const said = await shell(muster, setUp, tryIt)
  assert.match(said, /"name":"Nightly"[^}]*"cron_schedule":"30 4 \* \* \*"[^}]*"next_run_at":"/)
  assert.match(said, /"status":"completed"[^\n]*"cost_usd":null[^\n]*$/)
  const shown = await shell(muster, setUp, lookInto, 'echo " $FLOW_RUN"', price)
  const [, flowRunId = ''] = / (\S+)\n/.exec(shown) ?? []
  assert.match(shown, new RegExp(`"id":"${flowRunId}"[^\\n]*"status":"completed"`))
  const [, runId] = /"id":"note".*?"run_id":"([^"]+)"/.exec(shown) ?? []
  assert.match(shown, new RegExp(`"id":"${runId}"[^\\n]*"trigger":\\{[^}]*"flow_run_id":"${flowRunId}"`))
  assert.match(shown, /"status":"completed"[^\n]*"cost_usd":0\.\d+[^\n]*$/)
  await muster.stop()
})

test('B7 docs/app-modules.md: a flow by a webhook, and by a change of an object', async (t) => {
  const hooked = part(appModules, 'A flow by a webhook')
  const reacting = part(appModules, 'A flow by a change of an object')
  const muster = await startWith(t, hooked, reacting)
  const said = await shell(muster, setUp, ...blocks(hooked, 'sh'), ...blocks(reacting, 'sh'))
  const [, delivered] = /"secret":"whsec_[^\n]*\n\{"run_id":"([^"]+)"\}/.exec(said) ?? assert.fail(said)
  const [, reacted] = /"event_type":"created"[^}]*"run_id":"([^"]+)"/.exec(said) ?? assert.fail(said)
  const bakery = await projectCalled(muster, 'Bakery')
  const read = async (id: string | undefined): Promise<Run> => (await muster.call<Run>(`GET ${bakery}/runs/${id}`)).body
  for (const id of [delivered, reacted])
    await until(async () => (await read(id)).status === 'completed', 'the run has ended', 60_000)
  assert.deepEqual((await read(delivered)).input, { bread: 'rye', count: 3 })
  const { trigger, flow_run_id: flowRunId } = await read(reacted)
  assert.deepEqual([trigger.type, typeof flowRunId], ['reaction', 'string'])
  await muster.stop()
})

test('B7 docs/settings.md: the commands read and change the settings', async (t) => {
  const muster = await startMuster(t, options)
  const [begin = ''] = blocks(part(await page('objects.md'), 'A first object'), 'sh')
  const said = await shell(muster, begin.split('\n').slice(0, 4).join('\n'), ...blocks(await page('settings.md'), 'sh'))
  assert.match(said, /"cancel_drain":30000.*"cancel_drain":5000/s)
  await muster.stop()
})

test('B7 docs/flows.md: each example is valid and runs to completion in the demo project', async (t) => {
  await copyFile(join(repository, 'examples/bakery.ts'), join(folder, 'my-app.ts'))
  const muster = await startMuster(t, options)
  const demo = await projectCalled(muster, 'Demo')
  const flows = await page('flows.md')
  const [begin = ''] = blocks(part(flows, 'A first run'), 'sh')
  const isCommand = (line: string): boolean => !/\bID\b/.test(line)
  const printed = await shell(muster, begin.split('\n').filter(isCommand).join('\n'))
  const firstRun = JSON.parse(printed.slice(0, printed.indexOf('{"items"'))) as FlowRun
  const examples = blocks(part(flows, 'Patterns'), 'json').map((text): unknown => JSON.parse(text))
  assert.equal(examples.length, 8)
  const ids = [firstRun.id]
  for (const body of examples) {
    const { root } = body as { root: unknown }
    const verdict = await muster.call(`POST ${demo}/flows/validate`, { body: { root } })
    assert.deepEqual(verdict.body, { valid: true, errors: [] })
    const started = await muster.call<FlowRun>(`POST ${demo}/flow-runs`, { body })
    assert.equal(started.status, 202, started.text)
    ids.push(started.body.id)
  }
  for (const id of ids) {
    const run = await ended(muster, demo, id)
    assert.equal(run.status, 'completed', JSON.stringify(run))
    assert.ok(run.output !== null && run.output !== '', JSON.stringify(run))
  }
  const hierarchy = await ended(muster, demo, ids[1 + examples.findIndex(isHierarchical)] ?? '')
  assert.match(String(hierarchy.output), /\nDraft a text about green tea:\n.*\n\nProofread the text:\n/)
  const verdicts = await shell(
    muster,
    begin.split('\n').slice(0, 4).join('\n'),
    ...blocks(part(flows, 'Checking and storing a flow'), 'sh'),
  )
  assert.match(verdicts, /"valid":false.*there is no agent called Nobody/)
  assert.match(verdicts, /"name":"greet"/)
  await muster.stop()
})

const isHierarchical = (example: unknown): boolean => JSON.stringify(example).includes('"type":"hierarchical"')

test('B7 docs/flows.md: a template names the result of a pattern, and the list of a map, as the page says', async (t) => {
  const muster = await startMuster(t, options)
  const demo = await projectCalled(muster, 'Demo')
  const same = (args: unknown, id?: string) => ({ type: 'task', function: 'muster.identity', args, ...(id && { id }) })
  const both = { type: 'parallel', id: 'both', branches: [same(1), same(2)] }
  const loop = { type: 'loop', max_iterations: 2, body: same('{{previous}}!', 'round') }
  const map = same('{{item.items}}', 'mapped')
  const mapped = { type: 'map_reduce', items: [3, 4], workers: 2, map, reduce: 'muster.identity' }
  const all = { both: '{{results.both}}', round: '{{results.round}}', mapped: '{{results.mapped}}' }
  const root = { type: 'sequential', steps: [both, loop, mapped, same(all)] }
  const { body } = await muster.call<FlowRun>(`POST ${demo}/flow-runs`, { body: { root } })
  const run = await ended(muster, demo, body.id)
  assert.deepEqual(run.output, { both: [1, 2], round: '[1,2]!!', mapped: [[3], [4]] })
  await muster.stop()
})

test('B7 docs/objects.md: the commands make one object, change it, and find it by its key', async (t) => {
  const muster = await startMuster(t, options)
  const [commands = ''] = blocks(part(await page('objects.md'), 'A first object'), 'sh')
  const said = await shell(muster, commands)
  assert.equal(said.match(/"version":1,/g)?.length, 1, said)
  const [, found = ''] = said.split('{"items":')
  assert.match(found, /^\[\{[^\n]*"key":"C-17","properties":\{"city":"Rome","name":"Ada"\},"version":2,/)
  assert.equal(found.match(/"key":/g)?.length, 1, said)
  await muster.stop()
})

test('B7 docs/app-modules.md: tsc checks a module in a folder elsewhere, where nothing is installed', async (t) => {
  const elsewhere = await makeFolder(t)
  const [tsconfig = ''] = blocks(part(appModules, 'What a module may have'), 'json')
  await writeFile(join(elsewhere, 'tsconfig.json'), tsconfig.replace('/path/to/muster', repository))
  const check = async (text: string): Promise<string> => {
    await writeFile(join(elsewhere, 'my-app.ts'), text)
    const tsc = join(repository, 'node_modules/.bin/tsc')
    return promisify(execFile)(process.execPath, [tsc, '-p', '.'], { cwd: elsewhere, timeout: 120_000 }).then(
      () => 'fine',
      ({ stdout }: { stdout: string }) => stdout,
    )
  }
  assert.equal(await check(source), 'fine')
  assert.deepEqual((await readdir(elsewhere)).toSorted(), ['my-app.ts', 'tsconfig.json'])
  const wrong = source.replace("prompt: 'You", "promt: 'You").replace("function: 'to_bake'", "functoin: 'to_bake'")
  assert.match(await check(wrong), /'promt' does not exist[\s\S]*'functoin' does not exist/)
})

test('B7 docs/tools.md: the tools of the example can be called', async () => {
  const path = join(folder, 'tools.ts')
  await writeFile(path, blocks(part(await page('tools.md'), 'Tools of your own'), 'ts')[0] ?? '')
  const { tools } = await loadApp(path)
  const [convert, pay] = tools
  const context = { signal: new AbortController().signal, key: 'a-key-of-12345678', attempt: 1 }
  const ctx = { ...context, run_id: 'r', project_id: 'p', log: silentLog, emit: () => {} }
  assert.deepEqual(await convert?.execute({ euros: 2, currency: 'CHF' }, ctx), { amount: 1.9, currency: 'CHF' })
  assert.equal(convert?.parse({ euros: -1, currency: 'USD' }).ok, false)
  assert.deepEqual(await pay?.execute({ invoice: '7' }, ctx), { paid: '7', receipt: '12345678' })
  assert.deepEqual([convert?.effect, pay?.effect, pay?.timeoutMs], ['readonly', 'keyed', 10_000])
})
