// The HTTP edge in this process, on a database of its own, with builders for the rows that most tests need.

import type { InjectOptions } from 'fastify'
import type { z } from 'zod'
import type { App } from '../../src/api/http/app.ts'
import { createServer, type ServerOptions } from '../../src/api/server.ts'
import type { Agent, agentInput } from '../../src/kernel/agent.ts'
import { newId } from '../../src/kernel/id.ts'
import { silentLog } from '../../src/kernel/log.ts'
import type { Project } from '../../src/kernel/project.ts'
import type { Role } from '../../src/kernel/role.ts'
import { createMetrics } from '../../src/observe/metrics.ts'
import { noTracing } from '../../src/observe/tracing.ts'
import { type Cipher, createCipher } from '../../src/secrets/cipher.ts'
import { atEnd } from './at-end.ts'
import { createTestDatabase, type TestDatabase } from './database.ts'
import { beginningOf, isEndless } from './endless.ts'
import { createTestServices, type TestServices, type TestServicesOptions } from './run-services.ts'

/** The principal of the admin token. */
export const INSTANCE_ID = newId()
export const ADMIN_TOKEN = 'test-admin-token-for-the-instance'

export interface Answer<Body = unknown> {
  status: number
  headers: Record<string, unknown>
  body: Body
  text: string
}

export interface Call {
  token?: string | null
  cookie?: string
  body?: unknown
  /** These headers are sent unchanged, and replace the headers that the call would set. */
  headers?: Record<string, string>
}

export interface TestApp extends TestDatabase {
  app: App
  cipher: Cipher
  services: TestServices
  call<Body = Record<string, unknown>>(route: string, options?: Call): Promise<Answer<Body>>
  createProject(name?: string): Promise<Project>
  createKey(projectId: string, role: Role, name?: string): Promise<{ id: string; key: string }>
  /** If the kit has models, the agent uses the model called `script`. */
  createAgent(projectId: string, input?: Partial<z.input<typeof agentInput>>): Promise<Agent>
}

export interface TestAppOptions extends Partial<Omit<ServerOptions, 'runs' | 'log'>>, TestServicesOptions {
  /** For a file that makes many apps: idle connections of an app are closed after this time. */
  idleTimeoutMs?: number
}

/** `call('POST /api/projects', {body})` uses the instance admin's token unless told otherwise; null sends none. */
export async function createTestApp(options: TestAppOptions = {}): Promise<TestApp> {
  const {
    models,
    tools,
    functions,
    decide,
    systemVariant,
    library,
    firstBackoffMs,
    leaseMs,
    waits,
    onEvents,
    ...others
  } = options
  const { log = silentLog, middleware, patterns, idleTimeoutMs, ...overrides } = others
  const database = await createTestDatabase(idleTimeoutMs === undefined ? {} : { idleTimeoutMs })
  const cipher = createCipher('test-secret-key')
  const services = await createTestServices(database, cipher, {
    models,
    tools,
    functions,
    patterns,
    middleware,
    decide,
    systemVariant,
    library,
    firstBackoffMs,
    leaseMs,
    waits,
    log,
    onEvents,
  })
  const app = await createServer({
    pool: database.pool,
    cipher,
    log,
    metrics: createMetrics(),
    tracer: noTracing,
    adminToken: ADMIN_TOKEN,
    instanceId: INSTANCE_ID,
    publicUrl: new URL('http://127.0.0.1:8080'),
    trustProxy: [],
    rateLimit: 0,
    readiness: async () => ({ database: true, migrations: true, worker: true }),
    version: '0.0.0-test',
    role: 'all',
    checkAnswers: true,
    runs: services,
    ...overrides,
  })
  await app.ready()
  atEnd(() => app.close())

  const call: TestApp['call'] = async (route, options = {}) => {
    const [method = '', url = ''] = route.split(' ')
    const token = options.token === undefined && options.cookie === undefined ? ADMIN_TOKEN : options.token
    const request: InjectOptions = {
      method: method as 'GET', // any method; inject's type lists the usual ones
      url,
      headers: {
        ...(token ? { authorization: `Bearer ${token}` } : {}),
        ...(options.cookie ? { cookie: options.cookie, origin: 'http://127.0.0.1:8080' } : {}),
        ...(options.body === undefined ? {} : { 'content-type': 'application/json' }),
        ...options.headers,
      },
      ...(options.body === undefined ? {} : { payload: JSON.stringify(options.body) }),
    }
    const answer = await app.inject({ ...request, payloadAsStream: isEndless(route) })
    const text = isEndless(route) ? await beginningOf(answer.stream()) : answer.body
    const isJson = String(answer.headers['content-type'] ?? '').startsWith('application/json')
    return {
      status: answer.statusCode,
      headers: answer.headers,
      body: isJson ? JSON.parse(text) : (null as never), // the caller says what it expects, and asserts it
      text,
    }
  }

  return {
    ...database,
    app,
    cipher,
    services,
    call,
    createProject: async (name = 'A project') => {
      const answer = await call<Project>('POST /api/projects', { body: { name } })
      return answer.body
    },
    createKey: async (projectId, role, name = `a ${role} key`) => {
      const answer = await call<{ id: string; key: string }>(`POST /api/projects/${projectId}/keys`, {
        body: { name, role },
      })
      return answer.body
    },
    createAgent: async (projectId, input = {}) => {
      const model = models ? { model: { provider: 'test', name: 'script' } } : {}
      const answer = await call<Agent>(`POST /api/projects/${projectId}/agents`, {
        body: { name: `agent ${newId().slice(-12)}`, ...model, ...input },
      })
      if (answer.status !== 201) throw new Error(`the agent was not created: ${answer.text}`)
      return answer.body
    },
  }
}
