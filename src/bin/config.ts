// The only reader of the environment. It reads once, validates, and names the variable when it fails. Flags mirror the
// variables and win over them.
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
  wholeNumber,
} from './config-values.ts'

export interface Config {
  port: number
  host: string
  dataDir: string
  databaseUrl: string | null
  adminToken: string | null
  secretKey: string | null
  role: 'all' | 'api' | 'worker'
  /** The service of compose.yaml that this process is; all of them where it is the only one. */
  serve: Service
  /** The agent-service to which the pages' requests are forwarded. */
  agentUrl: URL | null
  publicUrl: URL
  trustProxy: string[]
  rateLimit: number
  egressAllow: string[]
  otlpEndpoint: string | null
  /** Headers of the requests to it, by which it knows us. */
  otlpHeaders: Record<string, string>
  /** LangSmith, as a second place where traces are sent. */
  langsmith: { url: URL; key: string; project: string } | null
  /** The address at which people see a trace, with {trace_id} and {span_id} in it. */
  traceUrl: string | null
  demo: boolean
  logLevel: 'debug' | 'info' | 'warn' | 'error' | 'silent'
  providers: ProviderVariables
  faultPlan: FaultPlan | null
  /** The number of runs this process works on at once. */
  concurrency: number
  /** The number of connections that requests and runs of this process share. */
  pool: number
  /** The time this process owns its runs without renewing. */
  leaseMs: number
  /** The time calls under way may go on after a signal to stop. */
  drainMs: number
  /** The variant of whoever names none, where it is set. */
  systemVariant: string | null
  /** A prompt library in another process, instead of this one's own. */
  prompts: { url: URL; key: string | null } | null
  /** An app module. */
  app: string | null
  /** PATH of the commands that MCP servers are started with. */
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

export const settings: readonly Setting[] = [
  { variable: 'PORT', flag: 'port <number>', description: 'port to listen on (8080)' },
  { variable: 'HOST', flag: 'host <address>', description: 'address to listen on (127.0.0.1)' },
  { variable: 'MUSTER_DATA_DIR', flag: 'data-dir <path>', description: 'database and secrets (.muster)' },
  {
    variable: 'DATABASE_URL',
    flag: 'database-url <url>',
    description: 'an external PostgreSQL instead of the embedded one',
  },
  {
    variable: 'MUSTER_ROLE',
    flag: 'role <role>',
    description: 'all, api or worker; the last two need DATABASE_URL (all)',
  },
  {
    variable: 'MUSTER_SERVE',
    flag: 'serve <service>',
    description: 'one service alone: agent, prompts, genui or ui (all of them)',
  },
  {
    variable: 'MUSTER_AGENT_URL',
    flag: 'agent-url <url>',
    description: 'the agent-service to which MUSTER_SERVE=ui forwards',
  },
  { variable: 'MUSTER_APP', flag: 'app <path>', description: 'an app module with tools, functions, agents and flows' },
  {
    variable: 'SYSTEM_VARIANT',
    flag: 'system-variant <name>',
    description: 'the variant of prompts and systems where none is named (blue)',
  },
  {
    variable: 'MUSTER_PROMPTS_URL',
    flag: 'prompts-url <url>',
    description: 'a prompt library elsewhere, asked with MUSTER_PROMPTS_KEY (our own)',
  },
  { variable: 'MUSTER_CONCURRENCY', flag: 'concurrency <number>', description: 'runs under way at once (50)' },
  { variable: 'MUSTER_POOL', flag: 'pool <number>', description: 'database connections of this process (20)' },
  { variable: 'MUSTER_LEASE', flag: 'lease <ms>', description: 'how long runs are owned without renewing (10000)' },
  { variable: 'MUSTER_DRAIN', flag: 'drain <ms>', description: 'how long calls may go on when it stops (25000)' },
  { variable: 'MUSTER_PUBLIC_URL', flag: 'public-url <url>', description: 'the address people use (http://HOST:PORT)' },
  {
    variable: 'MUSTER_TRUST_PROXY',
    flag: 'trust-proxy <list>',
    description: 'addresses whose X-Forwarded-For counts (none)',
  },
  {
    variable: 'MUSTER_RATE_LIMIT',
    flag: 'rate-limit <number>',
    description: 'requests per second per key and address (300)',
  },
  {
    variable: 'MUSTER_EGRESS_ALLOW',
    flag: 'egress-allow <list>',
    description: 'private host:port or CIDR that tools may reach',
  },
  {
    variable: 'MUSTER_MCP_SAME_USER',
    flag: 'mcp-same-user <on|off>',
    description: 'programs of MCP servers run as this user where they cannot be kept from our secrets (off)',
  },
  { variable: 'MUSTER_DEMO', flag: 'demo <on|off>', description: 'a demo project at the first start (on)' },
  { variable: 'MUSTER_LOG_LEVEL', flag: 'log-level <level>', description: 'debug, info, warn, error or silent (info)' },
  {
    variable: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    flag: 'otlp-endpoint <url>',
    description: 'where traces are sent (nowhere)',
  },
  {
    variable: 'MUSTER_TRACE_URL',
    flag: 'trace-url <url>',
    description: 'where people see a trace: an address with {trace_id} in it',
  },
]

/** A mistake in the configuration; the message names the variable. */
export class ConfigError extends Error {}

// The embedded server takes 200, of which commands and migrations need some.
const MOST_ON_EMBEDDED = 150

type Environment = Readonly<Record<string, string | undefined>>

export function readConfig(environment: Environment): Config {
  // An empty variable counts as unset: compose files and shells write unset variables so.
  const env = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== undefined && value !== ''))
  const parsed = variables.safeParse(env)
  if (!parsed.success) {
    const issue = parsed.error.issues[0]
    throw new ConfigError(`${issue?.path.join('.')} ${issue?.message}`)
  }
  const value = parsed.data
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
    app: value.MUSTER_APP ? resolve(value.MUSTER_APP) : null,
    commandPath: value.PATH,
    mcpSameUser: value.MUSTER_MCP_SAME_USER === 'on',
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
  PORT: wholeNumber(1, 65_535).default(8080),
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
  MUSTER_RATE_LIMIT: wholeNumber(0, 1_000_000).default(300),
  MUSTER_EGRESS_ALLOW: list.refine(isAllowList, 'must be hosts, host:port or CIDR ranges').default([]),
  MUSTER_DEMO: onOff.default('on'),
  MUSTER_LOG_LEVEL: z
    .enum(['debug', 'info', 'warn', 'error', 'silent'], 'must be debug, info, warn, error or silent')
    .default('info'),
  MUSTER_FIND_OLLAMA: onOff.default('on'),
  MUSTER_FAULTS: faults.optional(),
  MUSTER_CONCURRENCY: wholeNumber(1, 100_000).default(50),
  MUSTER_POOL: wholeNumber(2, 10_000).default(20),
  MUSTER_LEASE: wholeNumber(500, 3_600_000).default(10_000),
  MUSTER_DRAIN: wholeNumber(0, 3_600_000).default(25_000),
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

/**
 * LangChain's libraries would send traces of their own, with everything that is said in them, past our own way out. The
 * variables that tell them to are taken away before they are loaded.
 */
export function silenceLibraries(environment: Record<string, string | undefined>): void {
  for (const maker of ['LANGSMITH', 'LANGCHAIN']) {
    for (const name of ['TRACING', 'TRACING_V2']) delete environment[`${maker}_${name}`]
  }
}

/** A server listens on a wildcard address, but nobody can open one. */
export function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost'
  return host.includes(':') ? `[${host}]` : host
}
