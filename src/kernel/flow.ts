// A flow is a tree of patterns over leaves. These are the leaves, and the fields that every node has. Each pattern has
// its schema in its own file; a tree is checked node by node, so each schema leaves the nodes within its node open.
import { z } from 'zod'
import { unlessMissing } from './explain-issue.ts'
import { durationField, nameField } from './fields.ts'

export const MOST_LEAVES = 10_000
export const DEEPEST_NESTING = 25

export const countField = z.int().min(1).max(MOST_LEAVES)
const nodeId = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be 1 to 64 letters, digits, "_" or "-"')
  .refine((id) => id !== '__proto__' && id !== 'root', 'is taken')

export const sharedFields = {
  id: nodeId.optional(),
  retry: z.strictObject({ max_retries: z.int().min(0).max(100), backoff: durationField.default(0) }).optional(),
  timeout: durationField.min(1).optional(),
}
const sharedShape = z.strictObject(sharedFields)

/** An agent's name or id. */
export const agentField = nameField
const functionName = z.string().min(1).max(200)

export const agentLeaf = z.strictObject({
  type: z.literal('task'),
  ...sharedFields,
  agent: agentField,
  input: z.unknown().optional(),
})
export const functionLeaf = z.strictObject({
  type: z.literal('task'),
  ...sharedFields,
  function: functionName,
  args: z.unknown().optional(),
})
export type AgentLeaf = z.infer<typeof agentLeaf>
export type FunctionLeaf = z.infer<typeof functionLeaf>
export type Leaf = AgentLeaf | FunctionLeaf
/** A leaf as its author writes it: the fields of the other kind are mistakes. */
export type LeafInput =
  | (z.input<typeof agentLeaf> & { function?: never; args?: never })
  | (z.input<typeof functionLeaf> & { agent?: never; input?: never })

/** One unit of work: an agent or a function of the app module. */
export const leafField = z.union([agentLeaf, functionLeaf], {
  error: unlessMissing('must be a leaf, {"type": "task", …}; patterns nest in steps, branches and body'),
})

/** Work that a pattern needs done: the name of a function, or a leaf. */
export const workField = z.union([functionName, leafField], {
  error: unlessMissing(
    'must be a leaf, {"type": "task", …}, or the name of a function; patterns nest in steps, branches and body',
  ),
})
export type Work = z.infer<typeof workField>

export const innerField = z.unknown()

/** A node that is not a leaf, as seen by code that does not know its pattern. */
export interface PatternNode extends z.infer<typeof sharedShape> {
  type: string
}
export type FlowNode = Leaf | PatternNode
export const isLeaf = (node: FlowNode): node is Leaf => node.type === 'task'

export const topologies = ['hierarchical', 'mesh', 'star', 'custom'] as const
export type Topology = (typeof topologies)[number]
