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
  assert.equal(app.functions.get('double')?.(21 as never, context), 42) // the function takes a number
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
  assert.equal(counter?.beforeModel?.({} as never), 1) // the hook reads nothing
  assert.equal(counting.middleware[1]?.live, true)
})

test('a module that never finishes loading is refused in time, by name', async () => {
  const path = join(folder, 'never.mjs')
  await writeFile(path, 'await new Promise(() => {})\nexport default {}')
  await assert.rejects(loadApp(path, 50), (error: Error) => {
    assert.match(error.message, /never\.mjs: the app module cannot be loaded: it did not finish within 0\.05 s\./)
    return true
  })
})

test('a JavaScript module works as well, in either module system, and every field may be left out', async () => {
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

test('B8 names that every object inherits are names like others, and no module has them unless it says so', async () => {
  const names = ['constructor', 'toString', 'hasOwnProperty', '__proto__']
  const each = (entry: string, from = names): string => `{ ${from.map((name) => `['${name}']: ${entry}`).join(', ')} }`
  const tools = each('{ description: "A.", input: {}, execute: () => 1 }', names.slice(0, 3))
  const app = await load(
    `export default { functions: ${each('() => 1')}, tools: ${tools}, agents: ${each('{}')}, flows: ${each('{ type: "task" }')} }`,
  )
  assert.deepEqual([...app.functions.keys()], names)
  assert.deepEqual(
    app.tools.map(({ name }) => name),
    names.slice(0, 3),
  )
  for (const entries of [app.agents, app.flows]) {
    assert.deepEqual(
      entries.map(({ name }) => name),
      names,
    )
  }
  const none = await load('export default { functions: {}, agents: {} }')
  assert.deepEqual([none.functions.get('toString'), none.agents], [undefined, []])
})

test('flows are given by name, as trees or as bodies of requests, or as a list', async () => {
  const root = { type: 'task', function: 'f' }
  const said = JSON.stringify(root)
  const forms = [`{ a: ${said} }`, `{ a: { root: ${said} } }`, `[{ name: 'a', root: ${said} }]`]
  for (const form of forms) {
    assert.deepEqual((await load(`export default { flows: ${form} }`)).flows, [{ name: 'a', root }], form)
  }
})

test('a tool that throws at once fails like a tool that rejects', async () => {
  const source = `export default { tools: { a: { description: 'A.', input: {}, execute() { throw new Error('no') } } } }`
  const tool = (await load(source)).tools[0]
  assert.ok(tool)
  await assert.rejects(tool.execute({}, context), /no/)
})

const tool = (fields: string): string =>
  `export default { tools: { a: { description: 'A.', input: {}, execute() {}, ${fields} } } }`

const wrong: [string, RegExp][] = [
  ['', /has no default export/],
  ['export default { tools: { a: { input: {}, execute() {} } } }', /tool "a": description is missing\./],
  ['export default 7', /mjs: the default export must be an object/],
  ['export default { tool: {} }', /the default export has no field "tool"\. Did you mean "tools"\?$/],
  ['export default { functions: { f: 1 } }', /function "f" must be a function\./],
  ['export default { tools: [] }', /mjs: tools must be an object of entries by name\.$/],
  ['export default null', /mjs: the default export must be an object, not null\.$/],
  ['export default []', /mjs: the default export must be an object, not a list\.$/],
  [
    'export default (async () => { throw new Error("no") })()',
    /mjs: the default export is a promise\. Write "export default await …"\.$/,
  ],
  ['export default () => ({})', /mjs: the default export is a function\. Export the object that it returns: /],
  ['export default class App { agents = {} }', /mjs: the default export is a class\. Export an object: /],
  ['export const agents = { Clerk: {} }', /mjs: the app module has no default export\. Export default \{project\?/],
  [
    'export default {\n  get agents() { throw new Error("no file") } }',
    /mjs: agents cannot be read: no file \(at \S*app-\d+\.mjs:2:24\)$/,
  ],
  [
    'export default { agents: [{ name: "Clerk", get prompt() { throw new Error("no file") } }] }',
    /mjs: agent "Clerk": prompt cannot be read: no file \(at \S*mjs:1:65\)$/,
  ],
  [
    'export default { middleware: [{ get beforeTool() { throw 5 } }] }',
    /mjs: middleware\[0\]\.beforeTool cannot be read: 5$/,
  ],
  [
    'class App { get tools() { throw new Error("no") } }; export default new App()',
    /mjs: the default export cannot be read: no \(at \S*mjs:1:33\)$/,
  ],
  [
    'export default { flows: { a: { type: "task", get function() { throw new Error("no file") } } } }',
    /mjs: flow "a": function cannot be read: no file/,
  ],
  [
    'export default { agents: { __proto__: { Clerk: {} } } }',
    /mjs: agents must be a plain object of entries by name: no instance of a class, no "__proto__"\.$/,
  ],
  ['export default { functions: new (class { f() {} })() }', /mjs: functions must be a plain object/],
  [
    'export default { tools: { ["__proto__"]: { description: "A.", input: {}, execute() {} } } }',
    /mjs: tool "__proto__" must have another name\.$/,
  ],
  ['export default { agents: { constructor: 5 } }', /mjs: agent "constructor" must be an object\.$/],
  ['export default { functions: { toString: 5 } }', /mjs: function "toString" must be a function\.$/],
  ['export default { constructor: 5 }', /mjs: the default export has no field "constructor"\./],
  [tool('execute: 1'), /tool "a": execute must be a function/],
  [tool('effect: "safe"'), /tool "a": effect must be one of "readonly", "keyed", "unsafe"\./],
  [tool('efect: "keyed"'), /tool "a" has no field "efect"\. Did you mean "effect"\?$/],
  [tool('description: ""'), /tool "a": description must not be empty/],
  [tool('input: "text"'), /tool "a": input must be a zod or a JSON schema/],
  [tool('input: { type: "string" }'), /tool "a": input: The input schema must describe an object/],
  [tool('input: { type: "object", not: { required: ["x"] } }'), /tool "a": input: not is not supported/],
  [tool('input: { _def: {}, parse() {} }'), /tool "a": input: This schema is of an older zod/],
  [tool('timeout: 0.5'), /tool "a": timeout must be a whole number/],
  [`export default { tools: { 'a b': { description: 'A.', input: {}, execute() {} } } }`, /tool "a b" must be letters/],
  ['export default { agents: { a: { max_steps: "many" } } }', /agent "a": max_steps must be a number/],
  ['export default { agents: [{ role: "x" }] }', /agents\[0\]: name is missing\./],
  [
    'export default { agents: [{ name: "clerk" }, { name: "clerk" }] }',
    /: agent "clerk": the module has two of this name\./,
  ],
  ['export default { agents: [{ name: "clerk", max_steps: "many" }] }', /: agent "clerk": max_steps must be a number/],
  [
    'export default { agents: { Librarian: { promt: "You sort." } } }',
    /mjs: agent "Librarian" has no field "promt"\. Did you mean "prompt"\?$/,
  ],
  [
    'export default { agents: [{ name: "Librarian", promt: "You sort." }] }',
    /mjs: agent "Librarian" has no field "promt"\. Did you mean "prompt"\?$/,
  ],
  [
    'export default { agents: { "A. Clerk": { trigger_type: "shedule", tools: 5 } } }',
    /agent "A\. Clerk": tools must be a list\.\n {2}agent "A\. Clerk": trigger_type must be one of .* Did you mean "schedule"\?$/,
  ],
  [
    'export default { flows: { a: { root: { type: "task" }, enable: true } } }',
    /mjs: flow "a" has no field "enable"\. Did you mean "enabled"\?$/,
  ],
  ['export default { flows: { a: { root: 5 } } }', /mjs: flow "a": root must be an object\.$/],
  ['export default { functions: { "muster.x"() {} } }', /mjs: function "muster\.x" must not begin with "muster\."\.$/],
  ['export default { project: 5 }', /\.mjs: project must be a text/],
  ['export default { flows: { a: [] } }', /flow "a" must be an object/],
  ['export default { flows: [{ root: {} }] }', /flows\[0\]: name is missing\./],
  ['export default { middleware: {} }', /middleware must be a list/],
  ['export default { middleware: [null] }', /middleware\[0\] must be an object of hooks/],
  [
    'export default { middleware: [{}] }',
    /middleware\[0\] must have one of beforeModel, afterModel, beforeTool, afterTool/,
  ],
  ['export default { middleware: [{ beforeModel: 1 }] }', /middleware\[0\]\.beforeModel must be a function/],
  [
    'export default { middleware: [{ beforModel() {} }] }',
    /middleware\[0\] has no field "beforModel"\. Did you mean "beforeModel"\?/,
  ],
  ['export default { middleware: [{ afterModel() {}, live: 1 }] }', /middleware\[0\]\.live must be true or false/],
  ['export default {', /cannot be loaded: /],
  ['throw new Error("no database")', /cannot be loaded: no database/],
]

test('a module that lies anywhere may import muster-agents and zod without installing them', async () => {
  const app = await load(
    `import { defineApp, defineFlow } from 'muster-agents'
     import { z } from 'zod'
     export default defineApp({ flows: { one: defineFlow({ type: 'task', function: 'f' }) }, tools: { hi: { description: 'Greets.', input: z.object({ to: z.string() }), execute: () => 'hi' } } })`,
  )
  assert.deepEqual(app.flows, [{ name: 'one', root: { type: 'task', function: 'f' } }])
  assert.deepEqual(app.tools[0]?.parse({ to: 1 }).ok, false)
  assert.deepEqual(app.tools[0]?.parse({ to: 'you' }), { ok: true, args: { to: 'you' } })
})

test('a flow that leads back to itself, or is no JSON, is refused by name', async () => {
  const circle = 'const steps = []; const root = { type: "sequential", steps }; steps.push(root)'
  await assert.rejects(
    load(`${circle}; export default { flows: { round: { root } } }`),
    /flow "round" cannot be written as JSON/,
  )
  const large = '{ type: "task", function: "f", args: 1n }'
  await assert.rejects(
    load(`export default { flows: { large: { root: ${large} } } }`),
    /flow "large" cannot be written as JSON/,
  )
})

test('B8 the error about a module names the file, the entry and the field', async () => {
  for (const [source, message] of wrong) await assert.rejects(load(source), message, source)
  await assert.rejects(
    loadApp('/no/such/app.ts'),
    /^Error: \/no\/such\/app\.ts: there is no such file: \/no\/such\/app\.ts\. The path /,
  )
  await assert.rejects(loadApp(folder), /: there is no such file: /)
})

test('B8 all mistakes of a module are named at one start, twenty at most', async () => {
  const tool = '{ description: "x", execute() {} }'
  const several = await load(
    `export default { agents: { A: { promt: 'x' }, B: { max_steps: 'x' } }, functions: { f: 1 }, tools: { t: ${tool} } }`,
  ).catch((error: Error) => error.message.replaceAll(/^\S*(?=app-)/g, ''))
  assert.deepEqual(String(several).split('\n'), [
    `app-${count}.mjs: there are 4 mistakes:`,
    '  function "f" must be a function.',
    '  tool "t": input must be a zod or a JSON schema.',
    '  agent "A" has no field "promt". Did you mean "prompt"?',
    '  agent "B": max_steps must be a number, not a text.',
  ])
  const many = Array.from({ length: 25 }, (_, index) => `a${index}: 1`).join()
  await assert.rejects(load(`export default { functions: { ${many} } }`), (error: Error) => {
    assert.equal(error.message.split('\n').length, 22)
    assert.match(error.message, /there are 25 mistakes:[\s\S]*\n {2}and 5 more\.$/)
    return true
  })
  const schemas = 'x: { description: "x", input: { type: "string" }, execute() {} }'
  const twice = '[{ name: "a" }, { name: "a" }]'
  await assert.rejects(
    load(`export default { tools: { ${schemas} }, agents: ${twice} }`),
    /there are 2 mistakes:\n {2}tool "x": input: .*\n {2}agent "a": the module has two of this name\.$/,
  )
})

test('B8 an error at load says the file, the line and the column', async () => {
  await writeFile(join(folder, 'broken.ts'), 'export const one = 1\n\nexport const two = = 2\n')
  await writeFile(join(folder, 'broken.mjs'), 'export const one = 1\n  const one = 2\n')
  const cases: [string, string, RegExp][] = [
    ['ts', 'const a: number = 1\nexport default { agents: {', /\(at \S*app-\d+\.ts:2:27\)$/],
    ['ts', 'const a: number = 1\n\nenum A { B }\nexport default {}', /enum .* \(at \S*app-\d+\.ts:3:1\)$/],
    ['mts', 'const a: number = 1\n\nconst a: number = 2\nexport default {}', /declared \(at \S*app-\d+\.mts:3:7\)$/],
    ['mjs', 'const a = 1\n const b = = 2\nexport default {}', / \(at \S*app-\d+\.mjs:2:12\)$/],
    ['mjs', 'import { no } from "node:path"\nexport default {}', /named 'no' \(at \S*app-\d+\.mjs:1:10\)$/],
    ['cjs', 'const a = 1\nmodule.exports = { b: = }', / \(at \S*app-\d+\.cjs:2:23\)$/],
    ['cjs', '\nmodule.exports = nothing', /nothing is not defined \(at \S*app-\d+\.cjs:2:18\)$/],
    ['ts', 'const f = (): never => {\n  throw new Error("no key")\n}\nf()', /no key \(at \S*app-\d+\.ts:2:9\)$/],
    ['ts', 'import { z } from "zod"\n\nexport default z.parse(5)', / \(at \S*app-\d+\.ts:3:18\)$/],
    ['ts', 'import "./broken.ts"\nexport default {}', / \(at \S*\/broken\.ts:3:20\)$/],
    ['ts', 'import "./broken"', /find module .*\. There is broken\.ts: imports .* name the file with its ending$/],
    ['ts', 'import "./broken.js"', /find module .*\. There is broken\.ts: /],
    ['ts', 'import "./nowhere"', /find module '\S*\/nowhere' imported from \S*app-\d+\.ts$/],
    ['ts', 'import "./broken.mjs"\nexport default {}', / \(at \S*\/broken\.mjs:2:9\)$/],
  ]
  for (const [extension, source, message] of cases) {
    const refused = await load(source, extension).catch((error: Error) => error)
    assert.ok(refused instanceof Error && refused.cause instanceof Error, source)
    assert.match(refused.message, message, source)
  }
})
