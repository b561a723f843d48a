// B8 in a real server: an app module with mistakes, with code that throws, and with code that changes between starts.
import assert from 'node:assert/strict'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Agent } from '../../src/kernel/agent.ts'
import type { FlowRun } from '../../src/kernel/flow-run.ts'
import type { Run, Step } from '../../src/kernel/run.ts'
import { atEnd } from '../kit/at-end.ts'
import { createUnusedDatabase } from '../kit/database.ts'
import { type Muster, makeFolder, runMuster, spawnMuster, startMuster } from '../kit/process.ts'
import { withClient } from '../kit/test-server.ts'
import { until } from '../kit/until.ts'

const wholeFile = { after: atEnd }
const folder = await makeFolder(wholeFile)
const databaseUrl = await createUnusedDatabase()
const secrets = { MUSTER_ADMIN_TOKEN: 'one-token-for-all-servers', MUSTER_SECRET_KEY: 'one-key-for-all-servers' }
const options = { databaseUrl, cwd: folder, env: { MUSTER_APP: './app.ts', MUSTER_DEMO: 'off', ...secrets } }
const write = (source: string): Promise<void> => writeFile(join(folder, 'app.ts'), source)

test('B8 a mistake at the start names the path as the operator gave it, the agent and the field', async (t) => {
  const mistakes: [string, string][] = [
    [
      `export default { project: 'Shop', agents: { Writer: { tools: ['nix'] } } }`,
      './app.ts: agent "Writer": tools: There is no tool called "nix".',
    ],
    [
      `export default { tools: { http_fetch: { description: 'Mine.', input: {}, execute() {} } } }`,
      './app.ts: tool "http_fetch": Muster has a tool of this name.',
    ],
    [
      `export default { project: 'Shop', flows: { nightly: { type: 'sequential', steps: [{ type: 'task', function: 'f' }] } } }`,
      './app.ts: flow "nightly": root.steps[0].function: there is no function called f',
    ],
  ]
  for (const [source, sentence] of mistakes) {
    await write(source)
    const { code, stderr } = await runMuster(t, ['start'], options)
    assert.notEqual(code, 0)
    assert.ok(stderr.includes(sentence), stderr)
  }
})

test('B8 a module that throws while it loads: the sentence has its line, and the log its stack', async (t) => {
  await write(`function connect(): never {\n  throw new Error('no database')\n}\nexport default { tools: connect() }`)
  const { code, stderr } = await runMuster(t, ['start'], options)
  assert.notEqual(code, 0)
  const sentence = './app.ts: the app module cannot be loaded: no database (at app.ts:2:9)'
  assert.ok(stderr.includes(`muster: ${sentence}`), stderr)
  const [line] = stderr.split('\n').filter((each) => each.includes('"stack"') && each.includes(sentence))
  assert.match(line ?? '', /at connect \(file:[^)]*\/app\.ts:2:9\)/, stderr)
})

test('B8 a module that cannot be read ends the start before a database is made', async (t) => {
  await write(`export default { agents: { Clerk: { max_steps: 'many' } } }`)
  const { databaseUrl: _, ...embedded } = options
  const { code, stderr, muster } = await runMuster(t, ['start'], embedded)
  assert.notEqual(code, 0)
  assert.match(stderr, /\.\/app\.ts: agent "Clerk": max_steps/)
  const files = await readdir(muster.dataDir)
  assert.deepEqual(
    files.filter((file) => file.startsWith('postgres')),
    [],
  )
})

const throwing = `
  function deep(what: string): never {
    throw new Error(what + ' is broken')
  }
  const model = { provider: 'offline', name: 'offline' }
  export default {
    project: 'Shop',
    functions: {
      snap: (input: unknown) => deep('the function'),
      async *trickle() {
        yield 1
        deep('the source')
      },
    },
    tools: {
      crack: { description: 'Breaks.', input: { type: 'object', properties: {} }, execute: () => deep('the tool') },
    },
    agents: { Clerk: { prompt: 'You use your tool.', model, tools: ['crack'] } },
    flows: {
      snapping: { type: 'task', function: 'snap' },
      trickling: { type: 'pipeline', source: { function: 'trickle' }, stages: [{ type: 'task', function: 'muster.identity' }] },
      counting: { type: 'map_reduce', items: { function: 'trickle' }, workers: 1, map: 'muster.identity', reduce: 'muster.identity' },
    },
  }
`

test('B8 stacks of functions, sources and tools that throw are in the log, with file and line, and in no answer', async (t) => {
  await write(throwing)
  const muster = await startMuster(t, options)
  const { path, agents, flows } = await shop(muster)
  const answers: string[] = []
  for (const flow of Object.values(flows)) {
    const started = await muster.call<FlowRun>(`POST ${path}/flow-runs`, { body: { flow_id: flow } })
    assert.equal(started.status, 202, started.text)
    const at = `${path}/flow-runs/${started.body.id}`
    const read = () => muster.call<FlowRun>(`GET ${at}`)
    await until(async () => (await read()).body.completed_at !== null, 'the flow run has ended')
    const ended = await read()
    assert.equal(ended.body.status, 'failed', ended.text)
    assert.match(ended.body.error ?? '', /the (function|source) is broken/)
    for (const below of ['', '/tasks', '/trace', '/events']) answers.push((await muster.call(`GET ${at}${below}`)).text)
  }
  const run = await muster.call<Run>(`POST ${path}/agents/${agents.Clerk?.id}/trigger`, {
    body: { input: 'Call crack {}.' },
  })
  const steps = await muster.call<{ items: Step[] }>(`GET ${path}/runs/${run.body.id}/steps`)
  assert.match(steps.text, /the tool is broken/)
  answers.push(run.text, steps.text)

  for (const text of answers) assert.doesNotMatch(text, /app\.ts|\bat deep\b/)
  const lines = muster.stderr().split('\n')
  for (const what of ['the function', 'the source', 'the tool']) {
    const told = lines.filter((line) => line.includes(`${what} is broken`) && line.includes('threw'))
    assert.equal(told.length, what === 'the source' ? 2 : 1, muster.stderr())
    for (const line of told) assert.match(line, /at deep \(file:[^)]*\/app\.ts:3:11\)/)
  }
  // For the next start.
  assert.equal((await muster.call(`POST ${path}/agents`, { body: { name: 'Porter' } })).status, 201)
  assert.equal((await muster.call(`PATCH ${path}`, { body: { name: 'Store' } })).status, 200)
  assert.equal((await muster.call('POST /api/projects', { body: { name: 'Shop' } })).status, 201)
  await muster.stop()
})

test('B8 the next start follows the changed code in the renamed project, disables what it no longer has, and leaves a taken name out', async (t) => {
  const changed = throwing.replace('You use your tool.', 'You use it with care.').replace(/snapping: .*\n/, '')
  await write(changed.replace('agents: {', "agents: { Porter: { role: 'a porter' },"))
  const muster = await startMuster(t, options)
  const { path, agents } = await shop(muster, 'Store')
  assert.match(
    muster.stderr(),
    /\.\/app\.ts: agent \\"Porter\\" is left out: the project \\"Store\\" has an agent of this name/,
  )
  assert.deepEqual([agents.Porter?.source, agents.Porter?.role], ['api', ''])
  assert.deepEqual([agents.Clerk?.prompt, agents.Clerk?.source], ['You use it with care.', 'app'])
  const { body } = await muster.call<{ items: { name: string; enabled: boolean }[] }>(`GET ${path}/flows`)
  assert.deepEqual(body.items.map(({ name, enabled }) => [name, enabled]).toSorted(), [
    ['counting', true],
    ['snapping', false],
    ['trickling', true],
  ])
  await muster.stop()
})

test('B8 no work is claimed before the code is followed, and a mistake in the code leaves all work as it was', async (t) => {
  const { id } = await withClient(databaseUrl, async (client) => {
    const { rows } = await client.query<{ id: string }>(
      `insert into agent_runs (id, project_id, agent_id, trigger, input, rights, status, ready_at)
       select gen_random_uuid(), project_id, id, '{"type":"manual"}', '"Go."', '{}', 'queued', now()
       from agents where name = 'Clerk' returning id`,
    )
    return rows[0] ?? { id: '' }
  })
  await write(throwing.replace("tools: ['crack']", "tools: ['nix']"))
  await withClient(databaseUrl, async (client) => {
    const count = async (from: string): Promise<number> => (await client.query(`select from ${from}`)).rowCount ?? 0
    await client.query('begin')
    await client.query(`select pg_advisory_xact_lock(hashtextextended('app code', 0))`)
    const muster = await spawnMuster(t, ['start'], options)
    const isAsking = async () => (await count(`pg_locks where locktype = 'advisory' and not granted`)) > 0
    await until(isAsking, 'the start is about to follow the code', 60_000)
    assert.equal(await count('workers'), 0, 'no worker has started')
    await client.query('commit')
    assert.notEqual((await muster.exited).code, 0)
    assert.match(muster.stderr(), /agent "Clerk": tools: There is no tool called "nix"/)
    assert.equal(await count(`agent_runs where id = '${id}' and status = 'queued' and fence = 0`), 1)
    assert.equal(await count('workers'), 0)
  })
})

async function shop(
  muster: Muster,
  called = 'Shop',
): Promise<{ path: string; agents: Record<string, Agent>; flows: Record<string, string> }> {
  const projects = await muster.call<{ items: { id: string; name: string }[] }>('GET /api/projects')
  const path = `/api/projects/${projects.body.items.find(({ name }) => name === called)?.id}`
  const agents = await muster.call<{ items: Agent[] }>(`GET ${path}/agents`)
  const flows = await muster.call<{ items: { id: string; name: string }[] }>(`GET ${path}/flows`)
  return {
    path,
    agents: Object.fromEntries(agents.body.items.map((each) => [each.name, each])),
    flows: Object.fromEntries(flows.body.items.map((each) => [each.name, each.id])),
  }
}
