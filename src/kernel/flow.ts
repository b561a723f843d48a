// A flow is a tree of patterns over leaves. These schemas describe each node as people write it. They leave out the
// nodes within a node, because the check of a tree (flows/validate.ts) walks it and names each node.
import { z } from 'zod'
import { durationField, nameField } from './fields.ts'

export const MOST_LEAVES = 10_000
export const DEEPEST_NESTING = 25
export const DEEPEST_FORK = 25
export const MOST_PIECES = 100_000

const count = z.int().min(1).max(MOST_LEAVES)
const nodeId = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be 1 to 64 letters, digits, "_" or "-"')
  .refine((id) => id !== '__proto__' && id !== 'root', 'is taken')

const shared = {
  id: nodeId.optional(),
  retry: z.strictObject({ max_retries: z.int().min(0).max(100), backoff: durationField.default(0) }).optional(),
  timeout: durationField.min(1).optional(),
}

/** An agent's name or id. */
const agentName = nameField
const functionName = z.string().min(1).max(200)

export const agentLeaf = z.strictObject({
  type: z.literal('task'),
  ...shared,
  agent: agentName,
  input: z.unknown().optional(),
})
export const functionLeaf = z.strictObject({
  type: z.literal('task'),
  ...shared,
  function: functionName,
  args: z.unknown().optional(),
})
export type AgentLeaf = z.infer<typeof agentLeaf>
export type FunctionLeaf = z.infer<typeof functionLeaf>
export type Leaf = AgentLeaf | FunctionLeaf

/** One unit of work: an agent or a function of the app module. */
export const leafField = z.union([agentLeaf, functionLeaf])

/** Work that a pattern needs done: the name of a function, or a leaf. */
export const workField = z.union([functionName, leafField])
export type Work = z.infer<typeof workField>

/** A node within a node. */
const inner = z.unknown()

const sequential = z.strictObject({ type: z.literal('sequential'), ...shared, steps: z.array(inner).min(1) })
const parallel = z.strictObject({
  type: z.literal('parallel'),
  ...shared,
  branches: z.array(inner).min(1),
  aggregate: workField.optional(),
})
const loop = z.strictObject({
  type: z.literal('loop'),
  ...shared,
  body: inner,
  max_iterations: count,
  until: workField.optional(),
})
const mapReduce = z.strictObject({
  type: z.literal('map_reduce'),
  ...shared,
  items: z.unknown(),
  workers: count,
  map: workField,
  reduce: workField,
  partition: workField.optional(),
  reducers: count.optional(),
})
const pipeline = z.strictObject({
  type: z.literal('pipeline'),
  ...shared,
  source: z.unknown(),
  stages: z.array(leafField).min(1).max(100),
  buffer: count.optional(),
  on_error: z.enum(['stop', 'skip']).default('stop'),
})
const forkJoin = z.strictObject({
  type: z.literal('fork_join'),
  ...shared,
  problem: z.unknown(),
  should_split: workField,
  split: workField,
  solve: workField,
  join: workField,
  workers: count,
  stealing: z.boolean().default(true),
})
const hierarchical = z.strictObject({
  type: z.literal('hierarchical'),
  ...shared,
  queen: agentName,
  workers: z.array(agentName).min(1).max(1_000),
  goal: z.string().min(1).max(200_000),
})
export const topologies = ['hierarchical', 'mesh', 'star', 'custom'] as const
export type Topology = (typeof topologies)[number]
const adaptive = z.strictObject({
  type: z.literal('adaptive'),
  ...shared,
  topology: z.enum(topologies).optional(),
  edges: z
    .array(z.tuple([z.string(), z.string()]))
    .max(10_000)
    .optional(),
  workers: z.union([z.int().min(1).max(1_000), z.array(nameField).min(1).max(1_000)]),
  tasks: z.array(leafField).min(1).max(MOST_LEAVES),
  overload: z.strictObject({ queue_length: count }).optional(),
  switch: z.boolean().default(true),
  workload: z.string().min(1).max(200).optional(),
})

export type Sequential = Omit<z.infer<typeof sequential>, 'steps'> & { steps: FlowNode[] }
export type Parallel = Omit<z.infer<typeof parallel>, 'branches'> & { branches: FlowNode[] }
export type Loop = Omit<z.infer<typeof loop>, 'body'> & { body: FlowNode }
export type MapReduce = z.infer<typeof mapReduce>
export type Pipeline = z.infer<typeof pipeline>
export type ForkJoin = z.infer<typeof forkJoin>
export type Hierarchical = z.infer<typeof hierarchical>
export type Adaptive = z.infer<typeof adaptive>
export type Pattern = Sequential | Parallel | Loop | MapReduce | Pipeline | ForkJoin | Hierarchical | Adaptive
export type FlowNode = Leaf | Pattern
export const isPattern = (node: FlowNode): node is Pattern => node.type !== 'task'

/** The schemas of all nodes but leaves, which have two kinds. */
export const patternSchemas = {
  sequential,
  parallel,
  loop,
  map_reduce: mapReduce,
  pipeline,
  fork_join: forkJoin,
  hierarchical,
  adaptive,
} as const satisfies Record<Pattern['type'], z.ZodType>
