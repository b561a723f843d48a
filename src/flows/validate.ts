// Tells whether a flow can run: each node is checked by itself, then the nodes together. Every problem names its node
// by the path to it, and all problems are told at once, so that a person mends a flow in one go.
import type { z } from 'zod'
import {
  type Adaptive,
  agentLeaf,
  DEEPEST_NESTING,
  type FlowNode,
  type ForkJoin,
  functionLeaf,
  type Leaf,
  MOST_LEAVES,
  type Pattern,
  patternSchemas,
  type Work,
} from '../kernel/flow.ts'
import { problemSource } from './patterns/fork-join.ts'
import { isTemplate } from './render.ts'

export interface FlowProblem {
  path: string
  message: string
}

/** The names that the flow's project and this installation know: agents by name or id, functions of the app module. */
export interface KnownNames {
  isAgent(name: string): boolean
  isFunction(name: string): boolean
}

export type CheckedFlow = { isValid: true; root: FlowNode } | { isValid: false; problems: FlowProblem[] }

export function validateFlow(root: unknown, known: KnownNames): CheckedFlow {
  const problems: FlowProblem[] = []
  const say = (path: string, message: string): void => void problems.push({ path, message })
  const check: Check = { known, say, ids: new Map(), leaves: 0 }
  const node = readNode(root, 'root', 1, check)
  if (check.leaves > MOST_LEAVES) say('root', `has ${check.leaves} leaves; a flow has ${MOST_LEAVES} at most`)
  return problems.length > 0 || node === null ? { isValid: false, problems } : { isValid: true, root: node }
}

interface Check {
  known: KnownNames
  say: (path: string, message: string) => void
  ids: Map<string, string>
  leaves: number
}

function readNode(value: unknown, path: string, depth: number, check: Check): FlowNode | null {
  if (depth > DEEPEST_NESTING) return refuse(check, path, `is nested more than ${DEEPEST_NESTING} deep`)
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return refuse(check, path, 'must be a node')
  const type = 'type' in value ? value.type : undefined
  if (type === 'task') return readLeaf(value, path, check)
  if (typeof type !== 'string' || !Object.hasOwn(patternSchemas, type)) {
    const types = ['task', ...Object.keys(patternSchemas)].join(', ')
    return refuse(check, path, `has the type ${JSON.stringify(type) ?? 'undefined'}; types are ${types}`)
  }
  const schema = patternSchemas[type as Pattern['type']] // one of its keys, asked above
  const shape = parse(schema, value, path, check)
  // Each schema leaves the nodes within it open; those are read next.
  return shape === null ? null : readPattern(shape as Pattern, path, depth, check)
}

function readLeaf(value: object, path: string, check: Check): Leaf | null {
  const isAgent = 'agent' in value
  if (isAgent === 'function' in value) return refuse(check, path, 'must name either an agent or a function')
  const leaf: Leaf | null = isAgent ? parse(agentLeaf, value, path, check) : parse(functionLeaf, value, path, check)
  if (leaf) checkLeaf(leaf, path, check)
  return leaf
}

function checkLeaf(leaf: Leaf, path: string, check: Check): void {
  check.leaves++
  noteId(leaf, path, check)
  if ('agent' in leaf) requireAgent(leaf.agent, `${path}.agent`, check)
  else requireFunction(leaf.function, `${path}.function`, check)
}

function readPattern(node: Pattern, path: string, depth: number, check: Check): Pattern | null {
  noteId(node, path, check)
  switch (node.type) {
    case 'sequential': {
      const steps = readAll(node.steps, `${path}.steps`, depth, check)
      return steps && { ...node, steps }
    }
    case 'parallel': {
      const branches = readAll(node.branches, `${path}.branches`, depth, check)
      const { aggregate } = node
      if (aggregate !== undefined && !['array', 'merge', 'concat'].includes(String(aggregate))) {
        checkWork(aggregate, `${path}.aggregate`, check)
      }
      return branches && { ...node, branches }
    }
    case 'loop': {
      const body = readNode(node.body, `${path}.body`, depth + 1, check)
      if (node.until !== undefined) checkWork(node.until, `${path}.until`, check)
      return body && { ...node, body }
    }
    case 'map_reduce':
      checkItems(node.items, `${path}.items`, check)
      checkWork(node.map, `${path}.map`, check)
      checkWork(node.reduce, `${path}.reduce`, check)
      if (node.partition !== undefined && node.partition !== 'hash' && node.partition !== 'range') {
        checkWork(node.partition, `${path}.partition`, check)
      }
      check.leaves += node.workers + (node.reducers ?? 0)
      return node
    case 'pipeline':
      checkItems(node.source, `${path}.source`, check)
      for (const [index, stage] of node.stages.entries()) checkLeaf(stage, `${path}.stages[${index}]`, check)
      return node
    case 'fork_join':
      if (node.problem === undefined) check.say(`${path}.problem`, 'is required')
      checkProblem(node.problem, path, check)
      for (const part of ['should_split', 'split', 'solve', 'join'] as const) {
        checkWork(node[part], `${path}.${part}`, check)
      }
      return withSource(node, check)
    case 'hierarchical':
      requireAgent(node.queen, `${path}.queen`, check)
      for (const [index, worker] of node.workers.entries()) requireAgent(worker, `${path}.workers[${index}]`, check)
      return node
    case 'adaptive':
      for (const [index, task] of node.tasks.entries()) checkLeaf(task, `${path}.tasks[${index}]`, check)
      checkTopology(node, path, check)
      return node
  }
}

function readAll(values: readonly unknown[], path: string, depth: number, check: Check): FlowNode[] | null {
  const nodes = values.map((value, index) => readNode(value, `${path}[${index}]`, depth + 1, check))
  return nodes.includes(null) ? null : nodes.filter((node) => node !== null)
}

/** The work is a function's name, or a leaf. */
function checkWork(work: Work, path: string, check: Check): void {
  if (typeof work === 'string') requireFunction(work, path, check)
  else checkLeaf(work, path, check)
}

/** The items are a list, a template that gives one, or a function that does. */
function checkItems(items: unknown, path: string, check: Check): void {
  if (Array.isArray(items)) return
  if (typeof items === 'string') {
    if (!isTemplate(items)) requireFunction(items, path, check)
    return
  }
  const isCall =
    items !== null && typeof items === 'object' && 'function' in items && typeof items.function === 'string'
  if (isCall) requireFunction(String(items.function), `${path}.function`, check)
  else check.say(path, 'must be a list, a template such as {{input}}, or the name of a function')
}

export function workerNames(workers: Adaptive['workers']): string[] {
  return Array.isArray(workers) ? workers : Array.from({ length: workers }, (_, index) => `w${index + 1}`)
}

function checkTopology({ topology, edges, workers }: Adaptive, path: string, check: Check): void {
  const names = workerNames(workers)
  if (new Set(names).size < names.length) check.say(`${path}.workers`, 'names a worker twice')
  if (topology === 'custom' && !edges?.length) check.say(`${path}.edges`, 'a custom topology needs edges')
  if (topology !== 'custom' && edges) check.say(`${path}.edges`, 'only a custom topology has edges')
  edges?.forEach((edge, index) => {
    const unknown = edge.find((end) => !names.includes(end))
    if (unknown !== undefined) check.say(`${path}.edges[${index}]`, `there is no worker called ${unknown}`)
    if (edge[0] === edge[1]) check.say(`${path}.edges[${index}]`, 'leads from a worker to itself')
  })
}

function noteId({ id }: FlowNode, path: string, check: Check): void {
  if (id === undefined) return
  const first = check.ids.get(id)
  if (first !== undefined) check.say(`${path}.id`, `${id} is the id of ${first} already`)
  else check.ids.set(id, path)
}

function requireAgent(name: string, path: string, { known, say }: Check): void {
  if (!known.isAgent(name)) say(path, `there is no agent called ${name}`)
}

function requireFunction(name: string, path: string, { known, say }: Check): void {
  if (!known.isFunction(name)) say(path, `there is no function called ${name}`)
}

/** A function's name stands for its result, as with items; any other text is a problem in words. */
function withSource(node: ForkJoin, { known }: Check): ForkJoin {
  const { problem } = node
  return typeof problem === 'string' && known.isFunction(problem) ? { ...node, problem: { function: problem } } : node
}

function checkProblem(problem: unknown, path: string, check: Check): void {
  const source = problemSource(problem)
  if (source) requireFunction(source.function, `${path}.problem.function`, check)
}

function parse<Schema extends z.ZodType>(
  schema: Schema,
  value: object,
  path: string,
  check: Check,
): z.infer<Schema> | null {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  for (const issue of parsed.error.issues) check.say(pathTo(path, issue.path), wordsOf(issue))
  return null
}

/** A union in these schemas is always a leaf or a function's name: "Invalid input" helps nobody. */
const wordsOf = (issue: z.core.$ZodIssue): string =>
  issue.code === 'invalid_union'
    ? 'must be a leaf, {"type": "task", …}, or the name of a function where one may stand; patterns nest in steps, branches and body'
    : issue.message

const pathTo = (path: string, inner: readonly PropertyKey[]): string =>
  inner.reduce<string>((all, part) => (typeof part === 'number' ? `${all}[${part}]` : `${all}.${String(part)}`), path)

function refuse(check: Check, path: string, message: string): null {
  check.say(path, message)
  return null
}
