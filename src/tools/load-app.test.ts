import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { atEnd } from '../../test/kit/at-end.ts'
import { silentLog } from '../kernel/log.ts'
import type { ToolContext } from '../kernel/tool.ts'
import { loadApp } from './load-app.ts'

const folder = await mkdtemp(join(tmpdir(), 'muster-app-'))
atEnd(() => rm(folder, { recursive: true }))
let count = 0

async function load(source: string, extension = 'mjs') {
  count += 1
  const path = join(folder, `app-${count}.${extension}`)
  await writeFile(path, source)
  return loadApp(path)
}

const context: ToolContext = {
  signal: new AbortController().signal,
  key: 'k',
  attempt: 1,
  run_id: 'r',
  project_id: 'p',
  log: silentLog,
  emit: () => {},
}

test('a TypeScript module becomes tools that can be called, and functions, agents and flows as they are', async () => {
  const app = await loadApp(fileURLToPath(new URL('../../test/fixtures/app.ts', import.meta.url)))
  assert.deepEqual(
    app.tools.map(({ name, effect, isPoller, timeoutMs }) => [name, effect, isPoller, timeoutMs]),
    [
      ['charge', 'keyed', false, null],
      ['look', 'readonly', true, 5_000],
      ['send', 'unsafe', false, null],
    ],
  )
  const [charge, look] = app.tools
  assert.deepEqual(charge?.inputSchema.required, ['cents'])
  assert.equal(charge?.parse({ cents: 0 }).ok, false)
  assert.deepEqual(await charge?.execute({ cents: 5 }, context), { charged: '5', key: 'k' })
  assert.equal(look?.parse({}).ok, false)
  assert.equal(await look?.execute({ q: 'x' }, context), 'looked for x')
  assert.equal(app.functions.get('double')?.(21 as never, context), 42) // its author says that it takes a number
  assert.deepEqual(app.agents, [{ name: 'clerk', role: 'Charges cards.', tools: ['charge'] }])
  const step = { type: 'task', function: 'double' }
  assert.deepEqual(app.flows, [{ name: 'month_end', root: { type: 'sequential', steps: [step] } }])
})

test('middleware is kept as the module made it', async () => {
  const app = await loadApp(fileURLToPath(new URL('../../test/fixtures/middleware-app.ts', import.meta.url)))
  assert.deepEqual(
    app.middleware.map((each) => Object.keys(each)),
    [
      ['beforeModel', 'afterModel'],
      ['beforeTool', 'afterTool'],
    ],
  )
  const counting = await load(
    `class Counter { count = 0; beforeModel() { this.count += 1; return this.count } }
     export default { middleware: [new Counter(), { live: true, afterModel() {} }] }`,
  )
  const [counter] = counting.middleware
  assert.equal(counter?.beforeModel?.({} as never), 1) // it looks at nothing
  assert.equal(counting.middleware[1]?.live, true)
})

test('a module that never finishes loading is refused in time, by name', async () => {
  const path = join(folder, 'never.mjs')
  await writeFile(path, 'await new Promise(() => {})\nexport default {}')
  await assert.rejects(loadApp(path, 50), (error: Error) => {
    assert.match(error.message, /^The app module .*never\.mjs cannot be loaded: it did not finish within 0\.05 s\./)
    return true
  })
})

test('JavaScript does as well, in either module system, and everything may be left out', async () => {
  const nothing = await load('export default {}')
  assert.deepEqual([nothing.functions.size, nothing.tools, nothing.agents, nothing.flows], [0, [], [], []])
  assert.deepEqual(nothing.middleware, [])
  const common =
    'module.exports = { tools: { a: { description: "A.", input: { type: "object" }, execute() { return 1 } } } }'
  assert.equal((await load(common, 'cjs')).tools[0]?.name, 'a')
  const compiled = 'exports.__esModule = true; exports.default = { functions: { f() {} } }'
  assert.equal((await load(compiled, 'cjs')).functions.size, 1)
  assert.equal((await load('export default { agents: [{ name: "clerk" }] }')).agents[0]?.name, 'clerk')
})

test('flows are given by name, as trees or as what a request would say, or as a list', async () => {
  const root = { type: 'task', function: 'f' }
  const said = JSON.stringify(root)
  const forms = [`{ a: ${said} }`, `{ a: { root: ${said} } }`, `[{ name: 'a', root: ${said} }]`]
  for (const form of forms) {
    assert.deepEqual((await load(`export default { flows: ${form} }`)).flows, [{ name: 'a', root }], form)
  }
})

test('a tool that throws at once fails as one that rejects', async () => {
  const source = `export default { tools: { a: { description: 'A.', input: {}, execute() { throw new Error('no') } } } }`
  const tool = (await load(source)).tools[0]
  assert.ok(tool)
  await assert.rejects(tool.execute({}, context), /no/)
})

const tool = (fields: string): string =>
  `export default { tools: { a: { description: 'A.', input: {}, execute() {}, ${fields} } } }`

const wrong: [string, RegExp][] = [
  ['', /has no default export/],
  ['export default { tools: { a: { input: {}, execute() {} } } }', /tools\.a\.description: is required/],
  ['export default 7', /is not valid: the default export: expected object/],
  ['export default { tool: {} }', /the default export: Unrecognized key: "tool"/],
  ['export default { functions: { f: 1 } }', /functions\.f: must be a function/],
  ['export default { tools: [] }', /tools: expected record/],
  [tool('execute: 1'), /tools\.a\.execute: must be a function/],
  [tool('effect: "safe"'), /tools\.a\.effect: .*"readonly"\|"keyed"\|"unsafe"/],
  [tool('efect: "keyed"'), /tools\.a: Unrecognized key: "efect"/],
  [tool('description: ""'), /tools\.a\.description: /],
  [tool('input: "text"'), /tools\.a\.input: must be a zod or a JSON schema/],
  [tool('input: { type: "string" }'), /tools\.a\.input: The input schema must describe an object/],
  [tool('input: { type: "object", not: { required: ["x"] } }'), /tools\.a\.input: not is not supported/],
  [tool('input: { _def: {}, parse() {} }'), /tools\.a\.input: This schema is of an older zod/],
  [tool('timeout: 0.5'), /tools\.a\.timeout: /],
  [
    `export default { tools: { 'a b': { description: 'A.', input: {}, execute() {} } } }`,
    /tools\.a b: must be letters/,
  ],
  ['export default { agents: { a: { max_steps: "many" } } }', /agents\.a\.max_steps: expected number/],
  ['export default { agents: [{ role: "x" }] }', /agents\.0\.name: is required/],
  ['export default { flows: { a: [] } }', /flows\.a: expected record/],
  ['export default { flows: [{ root: {} }] }', /flows\.0\.name: is required/],
  ['export default { middleware: {} }', /middleware: expected array/],
  ['export default { middleware: [null] }', /middleware\.0: must be an object of hooks/],
  [
    'export default { middleware: [{}] }',
    /middleware\.0: must have one of beforeModel, afterModel, beforeTool, afterTool/,
  ],
  ['export default { middleware: [{ beforeModel: 1 }] }', /middleware\.0\.beforeModel: must be a function/],
  ['export default { middleware: [{ beforModel() {} }] }', /middleware\.0: Unrecognized key: "beforModel"/],
  ['export default { middleware: [{ afterModel() {}, live: 1 }] }', /middleware\.0\.live: must be true or false/],
  ['export default {', /cannot be loaded: /],
  ['throw new Error("no database")', /cannot be loaded: no database/],
]

test('a module that lies anywhere may import muster-agents and zod without installing them', async () => {
  const app = await load(
    `import { defineApp } from 'muster-agents'
     import { z } from 'zod'
     export default defineApp({ tools: { hi: { description: 'Greets.', input: z.object({ to: z.string() }), execute: () => 'hi' } } })`,
  )
  assert.deepEqual(app.tools[0]?.parse({ to: 1 }).ok, false)
  assert.deepEqual(app.tools[0]?.parse({ to: 'you' }), { ok: true, args: { to: 'you' } })
})

test('what is wrong is told with the name of the field', async () => {
  for (const [source, message] of wrong) await assert.rejects(load(source), message, source)
  await assert.rejects(loadApp('/no/such/app.ts'), /The app module \/no\/such\/app\.ts cannot be loaded: /)
})
