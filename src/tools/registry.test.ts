import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Db } from '../db/pool.ts'
import type { CallTool } from '../kernel/tool.ts'
import { createToolRegistry, type McpTools, modelToolName } from './registry.ts'
import { runTools } from './run-tools.ts'

function tool(name: string): CallTool {
  return {
    kind: 'call',
    name,
    description: name,
    inputSchema: { type: 'object' },
    parse: (args) => ({ ok: true, args }),
    effect: 'readonly',
    isPoller: false,
    timeoutMs: null,
    execute: async () => `${name} was called`,
  }
}

const noDb: Db = {
  query: async () => {
    throw new Error('the database was asked')
  },
}

const offers: Record<string, string[]> = {
  files: ['read', 'write.all'],
  a_b: ['c'],
  a: ['b_c', 'x'.repeat(100)],
  empty: [],
}
const mcp: McpTools = {
  approvedNames: async (_db, _project, servers) =>
    new Map(servers.flatMap((server) => (offers[server] ? [[server, offers[server]] as const] : []))),
  approvedTools: async () => ({ servers: [], next: null }),
  toolsOf: async (_project, server) => offers[server]?.map(tool) ?? null,
}
const noMcp: McpTools = {
  approvedNames: () => assert.fail('MCP was asked'),
  approvedTools: async () => ({ servers: [], next: null }),
  toolsOf: () => assert.fail('MCP was asked'),
}

const registry = createToolRegistry({ builtIns: [...runTools, tool('http_fetch')], appTools: [tool('charge')], mcp })

test('tools are found by name, in order and once; unknown names are reported', async () => {
  const { tools, missing } = await registry.resolve('p', ['charge', 'nothing', 'ask_human', 'charge', 'mcp:gone/*'])
  assert.deepEqual(
    tools.map(({ name }) => name),
    ['charge', 'ask_human'],
  )
  assert.deepEqual(missing, ['nothing', 'mcp:gone/*'])
})

test('an agent without MCP tools asks neither the database nor a server', async () => {
  const local = createToolRegistry({ builtIns: runTools, appTools: [tool('charge')], mcp: noMcp })
  assert.equal(await local.check(noDb, 'p', ['charge', 'spawn_agent']), null)
  assert.equal((await local.resolve('p', ['charge', 'spawn_agent'])).tools.length, 2)
})

test('the tools of an MCP server are named one by one or all together, and each appears once', async () => {
  const { tools, missing } = await registry.resolve('p', [
    'mcp:files/read',
    'mcp:files/*',
    'mcp:files/none',
    'mcp:empty/*',
  ])
  assert.equal(tools.length, 2)
  assert.equal(tools[0]?.name, 'mcp_files_read')
  assert.deepEqual(missing, ['mcp:files/none'])
  const first = tools[0]
  assert.ok(first?.kind === 'call')
  assert.equal(await first.execute({}, {} as never), 'read was called') // this tool reads no context
})

test('every name a model sees is one that providers take, and no two are alike', async () => {
  const { tools } = await registry.resolve('p', ['mcp:a_b/*', 'mcp:a/*', 'mcp:files/*'])
  const names = tools.map(({ name }) => name)
  assert.equal(names.length, 5)
  assert.equal(new Set(names).size, 5)
  for (const name of names) assert.match(name, /^[a-zA-Z0-9_-]{1,64}$/)
  assert.deepEqual(
    (await registry.resolve('p', ['mcp:a_b/*', 'mcp:a/*', 'mcp:files/*'])).tools.map(({ name }) => name),
    names,
    'a resumed run finds the same names',
  )
})

test('a server cannot take the name of another tool', () => {
  const forged = modelToolName('b.c', 'd', new Set())
  const taken = new Set([forged, 'mcp_x_y'])
  assert.notEqual(modelToolName('b.c', 'd', taken), forged)
  assert.notEqual(modelToolName('x', 'y', taken), 'mcp_x_y')
})

test('an unknown name is reported in a sentence', async () => {
  const cases: [string[], string | null][] = [
    [['charge', 'mcp:files/read', 'mcp:files/*', 'mcp:empty/*'], null],
    [['charge', 'chrage'], 'There is no tool called "chrage". Did you mean "charge"?'],
    [['mcp:gone/read'], 'There is no MCP server called "gone" in this project.'],
    [['mcp:gone/*'], 'There is no MCP server called "gone" in this project.'],
    [['mcp:files/delete'], 'The MCP server "files" has no tool called "delete".'],
    [['mcp:files'], 'There is no tool called "mcp:files".'],
    [[], null],
  ]
  const nobodyElse: Db = { query: async () => ({ rows: [], rowCount: 0 }) as never } // only the rows are read
  for (const [names, sentence] of cases) assert.equal(await registry.check(nobodyElse, 'p', names), sentence)
  const without = createToolRegistry({ builtIns: [], appTools: [], mcp: null })
  assert.match((await without.check(noDb, 'p', ['mcp:files/read'])) ?? '', /no MCP server called "files"/)
})

test('two tools of one name, or a name no provider takes, are refused at start', () => {
  assert.throws(() => createToolRegistry({ builtIns: runTools, appTools: [tool('ask_human')], mcp }), /"ask_human"/)
  assert.throws(() => createToolRegistry({ builtIns: [], appTools: [tool('a b')], mcp }), /"a b" is no tool name/)
})
