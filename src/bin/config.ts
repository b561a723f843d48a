// The only reader of the environment. It reads once, validates, and names the variable when it fails. Flags mirror the
// variables and win over them.
import { resolve } from 'node:path'
import ipaddr from 'ipaddr.js'
import { z } from 'zod'
import { parseAllow } from '../egress/allow.ts'
import { type FaultPlan, faultPoints } from '../kernel/fault.ts'

export interface Config {
  port: number
  host: string
  dataDir: string
  databaseUrl: string | null
  adminToken: string | null
  secretKey: string | null
  role: 'all' | 'api' | 'worker'
  publicUrl: URL
  trustProxy: string[]
  rateLimit: number
  egressAllow: string[]
  otlpEndpoint: string | null
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
  { variable: 'MUSTER_APP', flag: 'app <path>', description: 'an app module with tools, functions, agents and flows' },
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
  return {
    port: value.PORT,
    host: value.HOST,
    dataDir: resolve(value.MUSTER_DATA_DIR),
    databaseUrl: value.DATABASE_URL ?? null,
    adminToken: value.MUSTER_ADMIN_TOKEN ?? null,
    secretKey: value.MUSTER_SECRET_KEY ?? null,
    role: value.MUSTER_ROLE,
    publicUrl: new URL(value.MUSTER_PUBLIC_URL ?? `http://${urlHost(value.HOST)}:${value.PORT}`),
    trustProxy: value.MUSTER_TRUST_PROXY,
    rateLimit: value.MUSTER_RATE_LIMIT,
    egressAllow: value.MUSTER_EGRESS_ALLOW,
    otlpEndpoint: value.OTEL_EXPORTER_OTLP_ENDPOINT ?? null,
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
    app: value.MUSTER_APP ? resolve(value.MUSTER_APP) : null,
    commandPath: value.PATH,
    mcpSameUser: value.MUSTER_MCP_SAME_USER === 'on',
  }
}

const wholeNumber = (minimum: number, maximum: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/, 'must be a whole number')
    .transform(Number)
    .pipe(z.int().min(minimum, `must be at least ${minimum}`).max(maximum, `must be at most ${maximum}`))

const list = z.string().transform((text) => text.split(/[\s,]+/).filter((entry) => entry !== 'off' && entry !== ''))
const httpUrl = z.string().refine((text) => /^https?:$/.test(URL.parse(text)?.protocol ?? ''), 'must be an http(s) URL')
const onOff = z.enum(['on', 'off'], 'must be on or off')

/** `point=kill`, or `point=stop@3` for the third passing; commas separate several. */
const faults = z.string().transform((text, context): FaultPlan => {
  const plan: Record<string, { action: 'kill' | 'stop'; at: number }> = {}
  for (const entry of text.split(',')) {
    const [, point = '', action, at = '1'] = /^([\w.]+)=(kill|stop)(?:@(\d{1,6}))?$/.exec(entry) ?? []
    if (!faultPoints.some((known) => known === point)) {
      context.addIssue({ code: 'custom', message: `names no fault: ${entry}` })
    }
    plan[point] = { action: action === 'stop' ? 'stop' : 'kill', at: Number(at) }
  }
  return plan
})

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
  MUSTER_APP: z.string().optional(),
  MUSTER_MCP_SAME_USER: onOff.default('off'),
  PATH: z.string().default('/usr/local/bin:/usr/bin:/bin'),
  OTEL_EXPORTER_OTLP_ENDPOINT: httpUrl.optional(),
  OPENAI_API_KEY: z.string().optional(),
  ANTHROPIC_API_KEY: z.string().optional(),
  GOOGLE_GENERATIVE_AI_API_KEY: z.string().optional(),
  GOOGLE_VERTEX_PROJECT: z.string().optional(),
  GOOGLE_VERTEX_LOCATION: z.string().optional(),
})

/**
 * Takes the same values as Fastify, whose own complaint would come after the start of the database and without a name.
 */
const isProxy = (entry: string): boolean =>
  ['loopback', 'linklocal', 'uniquelocal'].includes(entry) || ipaddr.isValid(entry) || ipaddr.isValidCIDR(entry)

function isAllowList(entries: string[]): boolean {
  try {
    parseAllow(entries)
    return true
  } catch {
    return false
  }
}

/** A server listens on a wildcard address, but nobody can open one. */
export function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost'
  return host.includes(':') ? `[${host}]` : host
}
