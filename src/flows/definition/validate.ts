// Tells whether a flow can run. Every problem names its node by the path to it, and all problems are listed at once, so
// that a person mends a flow in one go.
import type { z } from 'zod'
import { cutText } from '../../kernel/cut-text.ts'
import { explainIssue, type Problem, placedProblems } from '../../kernel/explain-issue.ts'
import {
  agentLeaf,
  DEEPEST_NESTING,
  type FlowNode,
  functionLeaf,
  type Leaf,
  MOST_LEAVES,
  type PatternNode,
  type Work,
} from '../../kernel/flow.ts'
import { didYouMean, withGuess } from '../../kernel/nearest.ts'
import type { NodePart, Part, Pattern, Patterns } from '../machine/pattern.ts'
import { LONGEST_SHOWN, type PlaceholderUse, placeholdersIn } from '../machine/placeholders.ts'
import { withNodes } from '../machine/tree.ts'

/** Agents by name or id, and functions of the app module. */
export interface KnownNames {
  isAgent(name: string): boolean
  isFunction(name: string): boolean
  /** A sentence with the name that was probably meant, or nothing. */
  guessAgent?(name: string): string
  guessFunction?(name: string): string
}

export type CheckedFlow = { isValid: true; root: FlowNode } | { isValid: false; problems: Problem[] }

export function validateFlow(root: unknown, known: KnownNames, patterns: Patterns): CheckedFlow {
  const problems: Problem[] = []
  const said = new Set<string>()
  const say = (path: string, message: string): void => {
    const key = `${path} ${message}`
    if (!said.has(key)) problems.push({ path, message })
    said.add(key)
  }
  const check: Check = { known, patterns, say, ids: new Map(), unread: new Set(), uses: [], leaves: 0 }
  const node = readNode(root, 'root', 1, check)
  checkPlaceholders(check)
  if (check.leaves > MOST_LEAVES) say('root', `has ${check.leaves} leaves; a flow has ${MOST_LEAVES} at most`)
  return problems.length > 0 || node === null ? { isValid: false, problems } : { isValid: true, root: node }
}

interface Check {
  known: KnownNames
  patterns: Patterns
  say: (path: string, message: string) => void
  /** The path of each id, and whether its node has a result of its own. */
  ids: Map<string, { path: string; hasResult: boolean }>
  /** The ids within nodes that are wrong and were not read: a placeholder that names one is no further mistake. */
  unread: Set<string>
  /** The placeholders so far, each with the path to its text: a placeholder may name a leaf that comes after it. */
  uses: { path: string; use: PlaceholderUse; hasItem: boolean }[]
  leaves: number
}

const LONGEST_TYPE = 60

function readNode(value: unknown, path: string, depth: number, check: Check): FlowNode | null {
  if (depth > DEEPEST_NESTING) return refuse(check, value, path, `is nested more than ${DEEPEST_NESTING} deep`)
  if (value === null || typeof value !== 'object' || Array.isArray(value))
    return refuse(check, value, path, 'must be a node')
  const type = 'type' in value ? value.type : undefined
  if (type === 'task') return readLeaf(value, path, check)
  const pattern = typeof type === 'string' ? check.patterns.of({ type }) : undefined
  if (!pattern) {
    const types = ['task', ...check.patterns.all.map((each) => each.type)]
    const guess = typeof type === 'string' ? didYouMean(type, types) : ''
    const said = type === undefined ? 'has no type' : `has the type ${cutText(JSON.stringify(type), LONGEST_TYPE, '…')}`
    return refuse(check, value, path, withGuess(`${said}; types are ${types.join(', ')}`, guess))
  }
  const shape = parse(pattern.schema, value, path, check)
  // Each schema leaves the nodes within it open; those are read next.
  return shape === null ? null : readPattern(shape as PatternNode, pattern, path, depth, check)
}

function readLeaf(value: object, path: string, check: Check): Leaf | null {
  const isAgent = 'agent' in value
  if (isAgent === 'function' in value) return refuse(check, value, path, 'must name either an agent or a function')
  const leaf: Leaf | null = isAgent ? parse(agentLeaf, value, path, check) : parse(functionLeaf, value, path, check)
  if (leaf) checkLeaf(leaf, path, check)
  return leaf
}

/** `hasItem`: a pattern hands the leaf an item. */
function checkLeaf(leaf: Leaf, path: string, check: Check, { hasResult = true, hasItem = false } = {}): void {
  check.leaves++
  noteId(leaf, path, check, hasResult)
  if ('agent' in leaf) requireAgent(leaf.agent, `${path}.agent`, check)
  else requireFunction(leaf.function, `${path}.function`, check)
  if ('agent' in leaf) notePlaceholders(leaf.input, `${path}.input`, check, hasItem)
  else notePlaceholders(leaf.args, `${path}.args`, check, hasItem)
}

function readPattern(
  node: PatternNode,
  pattern: Pattern,
  path: string,
  depth: number,
  check: Check,
): PatternNode | null {
  noteId(node, path, check)
  const inner: NodePart[] = []
  let isWhole = true
  for (const part of pattern.parts(node)) {
    const at = `${path}.${part.field}${part.index === undefined ? '' : `[${part.index}]`}`
    if (!('node' in part)) {
      // The items that pass through a stream are its own: the stages have no results that a placeholder could name.
      checkPart(part, at, check, pattern.stream === undefined)
      continue
    }
    const read = readNode(part.node, at, depth + 1, check)
    if (read) inner.push({ ...part, node: read })
    else isWhole = false
  }
  const settled = pattern.check?.(node, {
    say: (field, message) => check.say(`${path}.${field}`, message),
    isFunction: (name) => check.known.isFunction(name),
    addLeaves: (count) => {
      check.leaves += count
    },
  })
  return isWhole ? withNodes(settled ?? node, inner) : null
}

function checkPart(part: Exclude<Part, NodePart>, at: string, check: Check, hasResult: boolean): void {
  if ('work' in part) checkWork(part.work, at, check, { hasResult, hasItem: !part.hasNoItem })
  else if ('given' in part) notePlaceholders(part.given, at, check, false)
  else if ('source' in part) requireFunction(part.source.function, at, check)
  else if ('agent' in part) requireAgent(part.agent, at, check)
  else check.say(at, part.wrong)
}

function checkWork(work: Work, path: string, check: Check, has: { hasResult: boolean; hasItem: boolean }): void {
  if (typeof work === 'string') requireFunction(work, path, check)
  else checkLeaf(work, path, check, has)
}

function noteId({ id }: FlowNode, path: string, check: Check, hasResult = true): void {
  if (id === undefined) return
  const first = check.ids.get(id)
  if (first !== undefined) check.say(`${path}.id`, `${id} is the id of ${first.path} already`)
  else check.ids.set(id, { path, hasResult })
}

function noteUnread(value: unknown, { unread }: Check): void {
  const waiting = [value]
  while (waiting.length > 0) {
    const each = waiting.pop()
    if (each === null || typeof each !== 'object') continue
    if ('type' in each && 'id' in each && typeof each.id === 'string') unread.add(each.id)
    for (const below of Object.values(each)) if (typeof below === 'object') waiting.push(below)
  }
}

function notePlaceholders(given: unknown, path: string, check: Check, hasItem: boolean): void {
  for (const use of placeholdersIn(given)) check.uses.push({ path: pathTo(path, use.at), use, hasItem })
}

/** Wrong placeholders that are told, and those with a suggestion: a flow may hold a hundred thousand. */
const MOST_WRONG = 100
const MOST_SUGGESTIONS = 10

/** Every placeholder is one, every result that it names is that of a node in the tree, and every item is there. */
function checkPlaceholders({ uses, ids, unread, say }: Check): void {
  const withResults = [...ids].flatMap(([id, { hasResult }]) => (hasResult ? id : []))
  let wrong = 0
  for (const { path, use, hasItem } of uses) {
    if (wrong >= MOST_WRONG) return
    const problem =
      (hasItem ? null : itemProblem(use)) ??
      problemOf(use, { ids, unread }, wrong < MOST_SUGGESTIONS ? withResults : [])
    if (problem === null) continue
    wrong++
    say(path, `${use.text}: ${problem}`)
  }
}

const itemProblem = ({ placeholder }: PlaceholderUse): string | null =>
  'root' in placeholder && placeholder.root === 'item' && !placeholder.isOptional
    ? 'there is no item here: a pattern hands items to its stages and to its fields for functions, such as map, reduce and until'
    : null

function problemOf(
  { placeholder }: PlaceholderUse,
  { ids, unread }: Pick<Check, 'ids' | 'unread'>,
  suggested: readonly string[],
): string | null {
  if ('wrong' in placeholder) return placeholder.wrong
  const [name] = placeholder.path
  if (placeholder.root !== 'results' || name === undefined) return null
  const known = ids.get(name)
  if (known ? known.hasResult : unread.has(name)) return null
  const shown = name.slice(0, LONGEST_SHOWN)
  if (known) return `the leaf ${shown} works on one item after the other and keeps no result of its own`
  return withGuess(`there is no leaf called ${shown}`, didYouMean(name, suggested) || listIds(suggested))
}

const MOST_IDS = 10

function listIds(ids: readonly string[]): string {
  if (ids.length === 0) return ''
  const more = ids.length > MOST_IDS ? `, and ${ids.length - MOST_IDS} more` : ''
  return ` The ids are ${ids.slice(0, MOST_IDS).join(', ')}${more}.`
}

function requireAgent(name: string, path: string, { known, say }: Check): void {
  if (!known.isAgent(name)) say(path, withGuess(`there is no agent called ${name}`, known.guessAgent?.(name)))
}

function requireFunction(name: string, path: string, { known, say }: Check): void {
  if (!known.isFunction(name)) say(path, withGuess(`there is no function called ${name}`, known.guessFunction?.(name)))
}

function parse<Schema extends z.ZodType>(
  schema: Schema,
  value: object,
  path: string,
  check: Check,
): z.infer<Schema> | null {
  const parsed = schema.safeParse(value, { error: explainIssue })
  if (parsed.success) return parsed.data
  for (const { path: inner, message } of placedProblems(parsed.error.issues)) check.say(pathTo(path, inner), message)
  noteUnread(value, check)
  return null
}

export const pathTo = (path: string, inner: readonly PropertyKey[]): string =>
  inner.reduce<string>((all, part) => (typeof part === 'number' ? `${all}[${part}]` : `${all}.${String(part)}`), path)

function refuse(check: Check, value: unknown, path: string, message: string): null {
  check.say(path, message)
  noteUnread(value, check)
  return null
}
