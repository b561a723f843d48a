// The only reader of the environment. It reads once, validates, and names the variable when it fails. Flags win.
import { resolve } from 'node:path'
import { z } from 'zod'
import { type Service, services } from '../api/served-groups.ts'
import type { FaultPlan } from '../kernel/fault.ts'
import { isPromptName } from '../kernel/prompt.ts'
import {
  faults,
  headerList,
  httpUrl,
  isAllowList,
  isProxy,
  list,
  onOff,
  plainUrl,
  portField,
  wholeNumberField,
} from './config-values.ts'

export interface Config {
  port: number
  host: string
  dataDir: string
  databaseUrl: string | null
  adminToken: string | null
  secretKey: string | null
  role: 'all' | 'api' | 'worker'
  /** The service of compose.yaml that this process runs; a single process runs all of them. */
  serve: Service
  agentUrl: URL | null
  publicUrl: URL
  trustProxy: string[]
  rateLimit: number
  egressAllow: string[]
  otlpEndpoint: string | null
  /** Headers of the requests to the collector, which identify us. */
  otlpHeaders: Record<string, string>
  /** LangSmith, to which traces are sent as well. */
  langsmith: { url: URL; key: string; project: string } | null
  /** The address at which people see a trace, with {trace_id} and {span_id} in it. */
  traceUrl: string | null
  demo: boolean
  logLevel: 'debug' | 'info' | 'warn' | 'error' | 'silent'
  providers: ProviderVariables
  faultPlan: FaultPlan | null
  concurrency: number
  /** The number of connections that requests and runs of this process share. */
  pool: number
  /** The time for which this process owns its runs without renewing its claim. */
  leaseMs: number
  /** The time for which running calls may go on after a signal to stop. */
  drainMs: number
  /** The variant for requests that name none; null if it is unset. */
  systemVariant: string | null
  /** A prompt library in another process, in place of this process's own. */
  prompts: { url: URL; key: string | null } | null
  /** The path of an app module, as it was given. */
  app: string | null
  /** The PATH for the commands of MCP servers. */
  commandPath: string
  /** True allows MCP servers to run as Muster's own user if there is no other way. */
  mcpSameUser: boolean
}

export interface ProviderVariables {
  openaiKey: string | null
  anthropicKey: string | null
  googleKey: string | null
  vertexProject: string | null
  vertexLocation: string | null
  findOllama: boolean
}

/** A setting that has a flag; `muster start --help` shows this table. */
export interface Setting {
  variable: string
  flag: string
  description: string
}

const SETTINGS: readonly [variable: string, flag: string, description: string][] = [
  ['PORT', 'port <number>', 'port to listen on (8080)'],
  ['HOST', 'host <address>', 'address to listen on (127.0.0.1)'],
  ['MUSTER_DATA_DIR', 'data-dir <path>', 'database and secrets (.muster)'],
  ['DATABASE_URL', 'database-url <url>', 'an external PostgreSQL instead of the embedded one'],
  ['MUSTER_ROLE', 'role <role>', 'all, api or worker; the last two need DATABASE_URL (all)'],
  ['MUSTER_SERVE', 'serve <service>', 'one service alone: agent, prompts, genui or ui (all of them)'],
  ['MUSTER_AGENT_URL', 'agent-url <url>', 'the agent-service to which MUSTER_SERVE=ui forwards'],
  ['MUSTER_APP', 'app <path>', 'an app module with tools, functions, agents and flows'],
  ['SYSTEM_VARIANT', 'system-variant <name>', 'the variant of prompts and systems if none is named (blue)'],
  [
    'MUSTER_PROMPTS_URL',
    'prompts-url <url>',
    'the prompt library of another server, asked with MUSTER_PROMPTS_KEY (our own)',
  ],
  ['MUSTER_CONCURRENCY', 'concurrency <number>', 'the most runs at once (50)'],
  ['MUSTER_POOL', 'pool <number>', 'database connections of this process (20)'],
  ['MUSTER_LEASE', 'lease <ms>', 'time a process owns runs without renewing (10000)'],
  ['MUSTER_DRAIN', 'drain <ms>', 'time calls may go on at a stop (25000)'],
  ['MUSTER_PUBLIC_URL', 'public-url <url>', 'the address people use (http://HOST:PORT)'],
  ['MUSTER_TRUST_PROXY', 'trust-proxy <list>', 'addresses whose X-Forwarded-For counts (none)'],
  ['MUSTER_RATE_LIMIT', 'rate-limit <number>', 'requests per second per key and address (300)'],
  ['MUSTER_EGRESS_ALLOW', 'egress-allow <list>', 'private host:port or CIDR that tools may reach'],
  [
    'MUSTER_MCP_SAME_USER',
    'mcp-same-user <on|off>',
    'MCP servers may run as this user if they cannot be kept from our secrets (off)',
  ],
  ['MUSTER_DEMO', 'demo <on|off>', 'a demo project at the first start (on)'],
  ['MUSTER_LOG_LEVEL', 'log-level <level>', 'debug, info, warn, error or silent (info)'],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'otlp-endpoint <url>', 'the address to which traces are sent (none)'],
  ['MUSTER_TRACE_URL', 'trace-url <url>', 'the address at which people see a trace, with {trace_id} in it'],
]

export const settings: readonly Setting[] = SETTINGS.map(([variable, flag, description]) => ({
  variable,
  flag,
  description,
}))

export class ConfigError extends Error {}

// The embedded server takes 200 connections, of which commands and migrations need some.
const MOST_ON_EMBEDDED = 150

type Environment = Readonly<Record<string, string | undefined>>

/** Reads the configuration of this process. `flags` are values by the name of their variable. */
export const configOfProcess = (flags: Environment): Config => readConfig({ ...process.env, ...flags })

export function readConfig(environment: Environment): Config {
  const value = parseVariables(variables, environment)
  if (value.DATABASE_URL === undefined && value.MUSTER_POOL > MOST_ON_EMBEDDED) {
    throw new ConfigError(`MUSTER_POOL must be at most ${MOST_ON_EMBEDDED} without DATABASE_URL.`)
  }
  if (value.MUSTER_ROLE !== 'all' && value.DATABASE_URL === undefined) {
    throw new ConfigError(
      `MUSTER_ROLE=${value.MUSTER_ROLE} needs DATABASE_URL: the embedded database serves one process.`,
    )
  }
  requireService(value)
  return {
    port: value.PORT,
    host: value.HOST,
    dataDir: resolve(value.MUSTER_DATA_DIR),
    databaseUrl: value.DATABASE_URL ?? null,
    adminToken: value.MUSTER_ADMIN_TOKEN ?? null,
    secretKey: value.MUSTER_SECRET_KEY ?? null,
    // A service without runs has no workers either.
    role: hasRuns(value.MUSTER_SERVE) ? value.MUSTER_ROLE : 'api',
    serve: value.MUSTER_SERVE,
    agentUrl: value.MUSTER_AGENT_URL === undefined ? null : new URL(value.MUSTER_AGENT_URL),
    publicUrl: new URL(value.MUSTER_PUBLIC_URL ?? `http://${urlHost(value.HOST)}:${value.PORT}`),
    trustProxy: value.MUSTER_TRUST_PROXY,
    rateLimit: value.MUSTER_RATE_LIMIT,
    egressAllow: value.MUSTER_EGRESS_ALLOW,
    otlpEndpoint: value.OTEL_EXPORTER_OTLP_ENDPOINT ?? null,
    otlpHeaders: value.OTEL_EXPORTER_OTLP_HEADERS,
    langsmith:
      value.LANGSMITH_API_KEY === undefined
        ? null
        : {
            url: new URL(value.LANGSMITH_ENDPOINT),
            key: value.LANGSMITH_API_KEY,
            project: value.LANGSMITH_PROJECT,
          },
    traceUrl: value.MUSTER_TRACE_URL ?? null,
    demo: value.MUSTER_DEMO === 'on',
    logLevel: value.MUSTER_LOG_LEVEL,
    providers: {
      openaiKey: value.OPENAI_API_KEY ?? null,
      anthropicKey: value.ANTHROPIC_API_KEY ?? null,
      googleKey: value.GOOGLE_GENERATIVE_AI_API_KEY ?? null,
      vertexProject: value.GOOGLE_VERTEX_PROJECT ?? null,
      vertexLocation: value.GOOGLE_VERTEX_LOCATION ?? null,
      findOllama: value.MUSTER_FIND_OLLAMA === 'on',
    },
    faultPlan: value.MUSTER_FAULTS ?? null,
    concurrency: value.MUSTER_CONCURRENCY,
    pool: value.MUSTER_POOL,
    leaseMs: value.MUSTER_LEASE,
    drainMs: value.MUSTER_DRAIN,
    systemVariant: value.SYSTEM_VARIANT ?? null,
    prompts:
      value.MUSTER_PROMPTS_URL === undefined
        ? null
        : { url: new URL(value.MUSTER_PROMPTS_URL), key: value.MUSTER_PROMPTS_KEY ?? null },
    app: value.MUSTER_APP || null,
    commandPath: value.PATH,
    mcpSameUser: value.MUSTER_MCP_SAME_USER === 'on',
  }
}

function parseVariables<Schema extends z.ZodType>(schema: Schema, environment: Environment): z.output<Schema> {
  // An empty variable counts as unset: compose files and shells write unset variables so.
  const env = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== undefined && value !== ''))
  const parsed = schema.safeParse(env)
  if (parsed.success) return parsed.data
  const issue = parsed.error.issues[0]
  throw new ConfigError(`${issue?.path.join('.')} ${issue?.message}`)
}

/** The server that a command talks to. Without a URL it is the one that runs on the data folder. */
export interface ServerConfig {
  url: URL | null
  /** A key of a project, or the admin token. */
  key: string | null
  dataDir: string
  /** The name or the id of a project, or the first letters of the id. */
  project: string | null
}

/** The settings of the commands that talk to a server. They do not mind the settings of a server. */
export const clientSettings: readonly Setting[] = [
  { variable: 'MUSTER_URL', flag: 'url <url>', description: 'the address of the server; needs MUSTER_KEY' },
  { variable: 'MUSTER_DATA_DIR', flag: 'data-dir <path>', description: 'the data folder of a server here (.muster)' },
  { variable: 'MUSTER_PROJECT', flag: 'project <name>', description: "the project (the key's, or the only one)" },
]

export const serverOfProcess = (flags: Environment): ServerConfig => readServerConfig({ ...process.env, ...flags })

export function readServerConfig(environment: Environment): ServerConfig {
  const value = parseVariables(clientVariables, environment)
  // The key of one server must not be sent to another one.
  if (value.MUSTER_URL !== undefined && value.MUSTER_KEY === undefined) {
    throw new ConfigError('MUSTER_URL needs MUSTER_KEY: a key of a project on that server, or its admin token.')
  }
  return {
    url: value.MUSTER_URL === undefined ? null : new URL(value.MUSTER_URL),
    key: value.MUSTER_KEY ?? value.MUSTER_ADMIN_TOKEN ?? null,
    dataDir: resolve(value.MUSTER_DATA_DIR),
    project: value.MUSTER_PROJECT ?? null,
  }
}

const hasRuns = (serve: Service): boolean => serve === 'all' || serve === 'agent'

/** Refuses settings that contradict the service. */
function requireService({ MUSTER_SERVE: serve, ...value }: z.infer<typeof variables>): void {
  if (value.MUSTER_ROLE === 'worker' && serve !== 'all') {
    throw new ConfigError(`MUSTER_SERVE=${serve} and MUSTER_ROLE=worker exclude each other: a worker serves nothing.`)
  }
  if ((serve === 'prompts' || serve === 'genui') && value.DATABASE_URL === undefined) {
    throw new ConfigError(`MUSTER_SERVE=${serve} needs DATABASE_URL: the embedded database serves one process.`)
  }
  if (serve === 'prompts' && value.MUSTER_PROMPTS_URL !== undefined) {
    throw new ConfigError('MUSTER_SERVE=prompts is the prompt library itself: leave MUSTER_PROMPTS_URL unset.')
  }
  if (serve !== 'ui') {
    if (value.MUSTER_AGENT_URL === undefined) return
    throw new ConfigError('MUSTER_AGENT_URL is for MUSTER_SERVE=ui, which forwards to it.')
  }
  if (value.MUSTER_AGENT_URL === undefined) {
    throw new ConfigError('MUSTER_SERVE=ui needs MUSTER_AGENT_URL: the agent-service to which it forwards.')
  }
  if (isOwnAddress(new URL(value.MUSTER_AGENT_URL), value)) {
    throw new ConfigError('MUSTER_AGENT_URL is the address of this process itself: name the agent-service.')
  }
}

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]']

function isOwnAddress({ hostname, port, protocol }: URL, { HOST, PORT }: { HOST: string; PORT: number }): boolean {
  const own = urlHost(HOST)
  const isHere = hostname === own || (LOOPBACK.includes(hostname) && LOOPBACK.includes(own))
  return isHere && Number(port || (protocol === 'https:' ? 443 : 80)) === PORT
}

const variables = z.object({
  PORT: portField.default(8080),
  HOST: z
    .string()
    .regex(/^[\w.:-]+$/, 'must be an address or a host name')
    .default('127.0.0.1'),
  MUSTER_DATA_DIR: z.string().default('.muster'),
  DATABASE_URL: z
    .string()
    .refine((text) => /^postgres(ql)?:\/\/./.test(text), 'must be a postgres:// URL')
    .optional(),
  MUSTER_ADMIN_TOKEN: z.string().regex(/^\S+$/, 'must not hold white space').optional(),
  MUSTER_SECRET_KEY: z.string().optional(),
  MUSTER_ROLE: z.enum(['all', 'api', 'worker'], 'must be all, api or worker').default('all'),
  MUSTER_SERVE: z.enum(services, `must be ${services.slice(1).join(', ')} or unset`).default('all'),
  MUSTER_AGENT_URL: plainUrl.optional(),
  MUSTER_PUBLIC_URL: httpUrl.optional(),
  MUSTER_TRUST_PROXY: list.refine((entries) => entries.every(isProxy), 'must be addresses or CIDR ranges').default([]),
  MUSTER_RATE_LIMIT: wholeNumberField(0, 1_000_000).default(300),
  MUSTER_EGRESS_ALLOW: list.refine(isAllowList, 'must be hosts, host:port or CIDR ranges').default([]),
  MUSTER_DEMO: onOff.default('on'),
  MUSTER_LOG_LEVEL: z
    .enum(['debug', 'info', 'warn', 'error', 'silent'], 'must be debug, info, warn, error or silent')
    .default('info'),
  MUSTER_FIND_OLLAMA: onOff.default('on'),
  MUSTER_FAULTS: faults.optional(),
  MUSTER_CONCURRENCY: wholeNumberField(1, 100_000).default(50),
  MUSTER_POOL: wholeNumberField(2, 10_000).default(20),
  MUSTER_LEASE: wholeNumberField(500, 3_600_000).default(10_000),
  MUSTER_DRAIN: wholeNumberField(0, 3_600_000).default(25_000),
  SYSTEM_VARIANT: z.string().refine(isPromptName, 'must be the name of a variant, like blue').optional(),
  MUSTER_PROMPTS_URL: httpUrl.optional(),
  MUSTER_PROMPTS_KEY: z.string().regex(/^\S+$/, 'must not hold white space').optional(),
  MUSTER_APP: z.string().optional(),
  MUSTER_MCP_SAME_USER: onOff.default('off'),
  PATH: z.string().default('/usr/local/bin:/usr/bin:/bin'),
  OTEL_EXPORTER_OTLP_ENDPOINT: httpUrl.optional(),
  OTEL_EXPORTER_OTLP_HEADERS: headerList.default({}),
  LANGSMITH_API_KEY: z.string().regex(/^\S+$/, 'must not hold white space').optional(),
  LANGSMITH_ENDPOINT: plainUrl.default('https://api.smith.langchain.com'),
  LANGSMITH_PROJECT: z
    .string()
    .max(200, 'must have at most 200 characters')
    .regex(/^[\x20-\x7e]+$/, 'must be plain letters')
    .default('default'),
  MUSTER_TRACE_URL: httpUrl.refine((text) => text.includes('{trace_id}'), 'must hold {trace_id}').optional(),
  OPENAI_API_KEY: z.string().optional(),
  ANTHROPIC_API_KEY: z.string().optional(),
  GOOGLE_GENERATIVE_AI_API_KEY: z.string().optional(),
  GOOGLE_VERTEX_PROJECT: z.string().optional(),
  GOOGLE_VERTEX_LOCATION: z.string().optional(),
})

const clientVariables = variables.pick({ MUSTER_DATA_DIR: true, MUSTER_ADMIN_TOKEN: true }).extend({
  MUSTER_URL: plainUrl.optional(),
  MUSTER_KEY: z.string().regex(/^\S+$/, 'must not hold white space').optional(),
  MUSTER_PROJECT: z.string().optional(),
})

/**
 * LangChain's libraries would send traces of their own, with all texts of models and people in them. The variables for
 * that are deleted before the libraries are loaded.
 */
export function silenceLibraries(): void {
  for (const maker of ['LANGSMITH', 'LANGCHAIN']) {
    for (const name of ['TRACING', 'TRACING_V2']) delete process.env[`${maker}_${name}`]
  }
}

/** A server can listen on a wildcard address, but a browser cannot open it. */
export function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost'
  return host.includes(':') ? `[${host}]` : host
}
