// Bodies that a tenant can send, as large as the server accepts, and shaped so that work on them multiplies. Each kind
// can be made in any size, so that the same work can be done with a small body.
import type { HostileMcp } from './hostile-mcp.ts'

/** The way in which a body reaches the server. */
export type Attack =
  | { kind: 'object'; properties: object }
  | { kind: 'flow'; root: object; input: unknown }
  | { kind: 'message'; text: string }
  /**
   * The offline model calls the tool of a server, with these arguments or with arguments that it makes from the schema.
   */
  | { kind: 'tool'; url: string; message: string }
  /** A request that may be refused; its work ends with its answer. */
  | { kind: 'request'; path: string; body?: object }

export interface Body {
  what: string
  of(bytes: number): Attack
}

const LONGEST_GOAL = 200_000
const LONGEST_MESSAGE = 1_000_000
/** The longest address that is accepted, query included. */
const LONGEST_QUERY = 12_000

const times = (text: string, bytes: number): string =>
  text.repeat(Math.max(1, Math.floor(bytes / Buffer.byteLength(text))))
const task = (name: string, args: unknown): object => ({ type: 'task', function: name, args })
const ask = (input: unknown): object => ({ type: 'task', agent: 'agent', input })
const list = <Item>(count: number, item: () => Item): Item[] =>
  Array.from({ length: Math.max(1, Math.floor(count)) }, item)
const within = (levels: number): object =>
  levels <= 1 ? task('muster.identity', 1) : { type: 'sequential', steps: [within(levels - 1)] }
const templates = (bytes: number): string[] =>
  Array.from({ length: Math.max(2, Math.floor(bytes / 16)) }, () => '{{input}}')

const object = (what: string, textOf: (bytes: number) => unknown): Body => ({
  what: `object: ${what}`,
  of: (bytes) => ({ kind: 'object', properties: { text: textOf(bytes) } }),
})

/** Half of the body multiplies the other half. */
const flow = (what: string, rootOf: (bytes: number) => object): Body => ({
  what: `flow: ${what}`,
  of: (bytes) => ({ kind: 'flow', root: rootOf(bytes / 2), input: 'x'.repeat(bytes / 2) }),
})

const message = (what: string, unit: string): Body => ({
  what: `message: ${what}`,
  of: (bytes) => ({ kind: 'message', text: times(unit, Math.min(bytes, LONGEST_MESSAGE)) }),
})

function doubled(keyword: string, levels: number): object {
  const names = Array.from({ length: levels }, (_, at) => [
    `d${at}`,
    { [keyword]: [1, 2].map(() => ({ $ref: `#/$defs/d${at + 1}` })) },
  ])
  const $defs = { ...Object.fromEntries(names), [`d${levels}`]: { type: 'string' } }
  return { type: 'object', properties: { a: { $ref: '#/$defs/d0' } }, required: ['a'], $defs }
}

function nestedLists(levels: number): object {
  return levels === 0 ? { type: 'string' } : { type: 'array', minItems: 1_000, items: nestedLists(levels - 1) }
}

export const bodies = (mcp: HostileMcp): Body[] => [
  object('one word without spaces', (bytes) => times('一', bytes)),
  object('different letters without spaces', (bytes) =>
    Array.from({ length: Math.floor(bytes / 3) }, (_, at) =>
      String.fromCharCode(0x4e00 + ((at * 7_919) % 20_000)),
    ).join(''),
  ),
  object('marks on one letter', (bytes) => `e${times('\u0301\u0323', bytes)}`),
  object('letters that stand for eighteen', (bytes) => times('\ufdfa', bytes)),
  object('short texts', (bytes) => Array.from({ length: Math.floor(bytes / 4) }, () => 'a')),
  flow('an agent is given the input many times, as a list', (bytes) => ask(templates(bytes))),
  flow('an agent is given the input many times, as a text', (bytes) => ask(times('{{input}} ', bytes))),
  flow('a function is given the input many times', (bytes) => task('muster.identity', templates(bytes))),
  flow('a function’s result is given to the next many times', (bytes) => ({
    type: 'sequential',
    steps: [
      task('muster.identity', templates(15 * 16)),
      task(
        'muster.identity',
        templates(bytes).map(() => '{{previous}}'),
      ),
    ],
  })),
  flow('hundreds of agents are given the input', (bytes) => ({
    type: 'parallel',
    branches: Array.from({ length: Math.min(200, Math.ceil(bytes / 100)) }, () => ask('{{input}} once more')),
  })),
  flow('the source of a pipeline', (bytes) => ({
    type: 'pipeline',
    source: { function: 'muster.identity', args: templates(bytes) },
    on_error: 'stop',
    stages: [{ type: 'task', function: 'muster.identity' }],
  })),
  flow('the items of a map', (bytes) => ({
    type: 'map_reduce',
    items: templates(bytes),
    workers: 2,
    map: 'muster.identity',
    reduce: 'muster.identity',
  })),
  flow('the goal of a queen', (bytes) => ({
    type: 'hierarchical',
    queen: 'agent',
    workers: ['agent'],
    goal: times('{{input}} ', Math.min(bytes, LONGEST_GOAL)),
  })),
  {
    what: 'request: a schedule of many parts',
    of: (bytes) => ({
      kind: 'request',
      path: '/agents',
      body: { name: 'late', trigger_type: 'cron', cron_schedule: `${times('1,', bytes)}1 * * * *` },
    }),
  },
  {
    what: 'request: a flow of thousands of leaves is checked',
    of: (bytes) => ({
      kind: 'request',
      path: '/flows/validate',
      body: { root: { type: 'parallel', branches: list(bytes / 80, () => task('muster.identity', '{{input}}')) } },
    }),
  },
  {
    what: 'request: a flow of flows is checked',
    of: (bytes) => ({
      kind: 'request',
      path: '/flows/validate',
      body: { root: within(Math.min(60, bytes / 40)) },
    }),
  },
  {
    what: 'request: a pattern for a long description',
    of: (bytes) => ({
      kind: 'request',
      path: '/flows/recommend',
      body: { workload: times('then 3, ', bytes) },
    }),
  },
  {
    what: 'request: objects are searched for many words',
    of: (bytes) => ({
      kind: 'request',
      path: `/objects?q=${encodeURIComponent(times('a b ', Math.min(bytes, LONGEST_QUERY) / 2))}`,
    }),
  },
  message('a tool named again and again', 'go {'),
  message('an address that ends in stops', 'http://....................'),
  message('handing over to nobody', 'delegate '),
  message('words', 'a '),
  {
    what: 'tool: choices that refer to the same twice',
    of: (bytes) => ({
      kind: 'tool',
      url: mcp.offering(doubled('anyOf', bytes > 2_048 ? 60 : 4)),
      message: 'go {"a": 1}',
    }),
  },
  {
    what: 'tool: lists within lists',
    of: (bytes) => ({
      kind: 'tool',
      url: mcp.offering({ type: 'object', properties: { a: nestedLists(bytes > 2_048 ? 15 : 1) }, required: ['a'] }),
      message: 'go',
    }),
  },
  {
    what: 'tool: a stream of one line of 16 MB',
    of: (bytes) => ({ kind: 'tool', url: mcp.streaming(bytes > 2_048 ? 16_000_000 : 1_000), message: 'go {}' }),
  },
  ...[200, 500].map((status) => ({
    what: `tool: an answer of status ${status} that unpacks to 400 MB`,
    of: (bytes: number): Attack => ({
      kind: 'tool',
      url: mcp.answering(status, bytes > 2_048 ? 400_000_000 : 1_000),
      message: 'go {}',
    }),
  })),
]
