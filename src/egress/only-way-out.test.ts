import assert from 'node:assert/strict'
import { glob, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'

// Finds code that opens connections by the modules a file imports and the globals it uses. The test cannot see an SDK
// that connects by itself. Known SDKs must be handed a `fetch`; a new one belongs into `sdks` or `clients`.

const root = join(import.meta.dirname, '../..')

/** Other files that may open connections, with the reason. */
const allowed: { path: string; module: string; names?: string[]; reason: string }[] = [
  { path: 'src/db/', module: 'pg', reason: 'the database; its address is the operator’s configuration' },
  { path: 'src/bin/database.ts', module: 'pg', reason: 'waits until DATABASE_URL answers' },
  { path: 'src/db/', module: 'node:net', reason: 'finds a free port for the embedded server' },
  { path: 'src/api/', module: 'node:http', names: ['createServer'], reason: 'listens, never dials' },
]

const builtins = ['http', 'https', 'http2', 'net', 'tls', 'dgram', 'dns', 'dns/promises', 'inspector', 'quic']
const clients =
  /^(?:undici|axios|got|ky|needle|superagent|request|node-fetch|cross-fetch|ws|eventsource|nodemailer|langsmith|postgres|pg|pg-native|mysql2?|i?oredis|redis|mongodb|amqplib|kafkajs|ssh2|socket\.io-client|@grpc\/.*|@opentelemetry\/exporter-.*)(?:\/|$)/
const sdks =
  /^(?:openai|openid-client|@anthropic-ai\/.*|@google\/.*|@ai-sdk\/(?!provider).*|@modelcontextprotocol\/sdk\/client\/(?:sse|streamableHttp).*)$/
/** Exports of these modules that open no connection. */
const harmless = new Set(['isIP', 'isIPv4', 'isIPv6', 'BlockList', 'SocketAddress', 'STATUS_CODES', 'METHODS'])

interface Import {
  module: string
  /** Null if the file imports the whole module. */
  names: string[] | null
}

function findImports(source: string): Import[] {
  const found: Import[] = []
  for (const match of source.matchAll(/\b(?:import|export)\s+(type\s)?([^'";]*?)\s*from\s*['"]([^'"]+)['"]/g)) {
    const [, typeOnly, clause = '', module = ''] = match
    if (typeOnly) continue
    const names = /^\{([^}]*)\}$/.exec(clause)?.[1]
    found.push({
      module,
      names:
        names
          ?.split(',')
          .map((name) => name.trim().split(' ')[0] ?? '')
          .filter(Boolean) ?? null,
    })
  }
  for (const match of source.matchAll(
    /\b(?:import|require|getBuiltinModule|require\.resolve)\s*\(?\s*['"`]([^'"`]+)['"`]/g,
  )) {
    found.push({ module: match[1] ?? '', names: null })
  }
  return found
}

function findViolations(path: string, text: string): string[] {
  const source = text.replace(/\/\*.*?\*\//gs, '').replace(/(?<![:'"`])\/\/.*$/gm, '')
  const violations: string[] = []
  for (const { module, names } of findImports(source)) {
    const plain = module.replace(/^node:/, '')
    if (sdks.test(module) && !/\bfetch\b/.test(source)) violations.push(`${path}: hand the egress fetch to ${module}`)
    if (!builtins.includes(plain) && !clients.test(module)) continue
    if (names?.every((name) => harmless.has(name))) continue
    const rule = allowed.find((entry) => path.startsWith(entry.path) && entry.module === module)
    if (rule && (!rule.names || names?.every((name) => rule.names?.includes(name)))) continue
    violations.push(`${path}: imports ${module}`)
  }
  for (const match of source.matchAll(
    /(?<!typeof )\b(?:globalThis|global|self)\s*(?:\?\.|\.|\[\s*['"`])\s*(?:fetch|WebSocket|EventSource)\b/g,
  )) {
    violations.push(`${path}: uses ${match[0]}`)
  }
  for (const match of source.matchAll(/\bnew\s+(?:WebSocket|EventSource|XMLHttpRequest)\b/g))
    violations.push(`${path}: ${match[0]}`)
  // `fetch` is fine if the file was handed one by that name: a parameter, or a field of a parameter.
  const handed = /\b(?:const|let|function)\s+fetch\b|\{[^{}()]*\bfetch\b[^{}()]*\}\s*[:=]|[(,]\s*fetch\??\s*:/.test(
    source,
  )
  // SQL has `fetch first`.
  const bare = /(?<![.\w$'"`-]|typeof )fetch\b(?!\s*\??:|['"`-]| first\b)/.exec(source)
  if (bare && !handed) violations.push(`${path}: uses the global fetch`)
  return violations
}

test('no code in src outside this folder opens connections', async () => {
  const violations: string[] = []
  let files = 0
  for await (const path of glob('src/**/*.ts', { cwd: root })) {
    if (path.startsWith('src/egress/') || path.endsWith('.test.ts')) continue
    files += 1
    violations.push(...findViolations(path, await readFile(join(root, path), 'utf8')))
  }
  assert.deepEqual(violations, [], 'Take the fetch of src/egress as an argument instead.')
  assert.ok(files > 2)
})

test('every way around is found when it is planted', () => {
  const planted = [
    `import http from 'node:http'`,
    `import { get } from 'https'`,
    `import { request as r } from "node:http2"`,
    `import * as net from 'node:net'`,
    `import { connect, isIP } from 'node:net'`,
    `import { connect } from 'node:tls'`,
    `import 'node:dgram'`,
    `import { resolve } from 'node:dns/promises'`,
    `export { request } from 'undici'`,
    `import {\n  fetch,\n  Agent,\n} from 'undici'`,
    `import axios from 'axios'`,
    `import WebSocket from 'ws'`,
    `const { get } = await import('node:https')`,
    `const net = require('net')`,
    `process.getBuiltinModule('node:net')`,
    `import { Pool } from 'pg'`,
    `await fetch('https://example.com')`,
    `await fetch (url)`,
    `const send = fetch`,
    `const options = { fetch }`,
    `run(options.fetch ?? fetch)`,
    `globalThis.fetch(url)`,
    `globalThis['fetch'](url)`,
    `new WebSocket(url)`,
    `new EventSource(url)`,
    `import { createOpenAI } from '@ai-sdk/openai'\ncreateOpenAI({ apiKey })`,
    `import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'`,
    `import { createServer, request } from 'node:http'`,
    `import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'`,
  ]
  for (const source of planted) assert.notDeepEqual(findViolations('src/runs/x.ts', source), [], source)
})

test('code that opens no connection, and code that the list allows, is left alone', () => {
  const harmlessSources: [string, string][] = [
    ['src/runs/x.ts', `import type { IncomingMessage } from 'node:http'`],
    ['src/runs/x.ts', `import { isIP } from 'node:net'`],
    ['src/runs/x.ts', `// a plain fetch( would not do\n/* fetch(x) */ const fetched = prefetch(x)`],
    ['src/runs/x.ts', `const response = await egress.fetch('public')(url)`],
    ['src/runs/x.ts', `export function run({ fetch, url }: Deps) { return fetch(url) }`],
    ['src/runs/x.ts', `export const run = (url: string, fetch: Fetch) => fetch(url)`],
    ['src/runs/x.ts', `interface Deps { readonly fetch: typeof fetch }`],
    ['src/runs/x.ts', `const tool = { name: 'http_fetch', title: "fetch" }`],
    ['src/models/x.ts', `import { createOpenAI } from '@ai-sdk/openai'\ncreateOpenAI({ fetch: deps.fetch })`],
    ['src/db/pool.ts', `import pg from 'pg'`],
    ['src/api/server.ts', `import { createServer } from 'node:http'`],
  ]
  for (const [path, source] of harmlessSources) assert.deepEqual(findViolations(path, source), [], source)
})
