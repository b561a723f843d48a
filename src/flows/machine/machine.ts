// A flow run as a pure machine: given the outcomes of its leaves, it says which leaves are to be started, and in the
// end how the flow ended. It calls nothing, waits for nothing and writes nothing, so a replay of the outcomes gives the
// same machine, which is how a flow goes on after a crash. It is given the patterns and knows none of them by name.
import { type FlowNode, isLeaf } from '../../kernel/flow.ts'
import { type FlowLeaf, flowLeaf, givenTo, streamLeaf } from './flow-leaf.ts'
import { again, type Frame, frameOf, rootFrame } from './frame.ts'
import { type Child, failed, type Move, type NodeOutcome, type StartMove } from './move.ts'
import type { Patterns } from './pattern.ts'
import { isHopeless, renderParts, type Scope } from './render.ts'

export interface Machine {
  begin(): FlowLeaf[]
  /** The leaves that may start because this leaf has ended. Unknown and settled leaves are ignored. */
  settle(leafId: string, outcome: LeafOutcome): FlowLeaf[]
  /** Patterns with a timeout that began since the last call. */
  armed(): { id: string; ms: number }[]
  /** True if the pattern has a timeout and is under way. */
  isTimed(id: string): boolean
  /** True if the leaf is running in this part of the flow, or is the part. */
  isWithin(leafId: string, id: string): boolean
  /** The time of a pattern is up: the pattern has failed, with all leaves in it. Ignored if the pattern has ended. */
  expire(id: string): FlowLeaf[]
  /** Leaves whose results nobody waits for any more, since the last call. */
  dropped(): FlowLeaf[]
  /** Leaves that count as slow if they are still under way this long after they began: `slow` is to be called then. */
  watched(): ReadonlyMap<string, number>
  /** Ignored if the leaf has ended. */
  slow(leafId: string): FlowLeaf[]
  /** Leaves that the patterns know of and have not started yet. */
  toCome(): number
  /** Null while leaves are under way. */
  outcome(): NodeOutcome | null
}

export type LeafOutcome =
  /** `onRecord`: the value is in the journal already, in the pages of a source or in the items of the last stage. */
  /** `keys`: the keys of the calls that gave the value, if functions gave it. */
  | { status: 'completed'; value: unknown; tookMs?: number; onRecord?: 'pages' | 'items'; keys?: readonly string[] }
  /** `made`: the calls with an effect that a failed agent has made, one a line. */
  | { status: 'failed'; error: string; made?: string; tookMs?: number }

interface State {
  input: unknown
  patterns: Patterns
  root: Frame
  /** Nodes that are to begin, and patterns that are to be asked: the last one is next. No call waits for another. */
  steps: Step[]
  /** Leaves under way, by id. */
  leaves: Map<string, Frame>
  /** The leaves among them that the caller does not know yet. */
  fresh: Map<string, FlowLeaf>
  /** Patterns under way that have a timeout, by id. */
  timed: Map<string, Frame>
  armed: { id: string; ms: number }[]
  dropped: FlowLeaf[]
  watched: Map<string, number>
  /** Leaves that are known and not started yet, by the id of their pattern. */
  toCome: Map<string, number>
  /** The ids of nodes that are called by the name people gave them. */
  takenNames: Set<string>
  results: Record<string, unknown>
  /** The results of the parts of a list, by the id of the leaf. */
  parts: Map<string, { of: Frame | null; list: unknown[] }>
  /** The number of nodes that patterns have made, by type. */
  made: Map<string, number>
  outcome: NodeOutcome | null
}

interface Step {
  frame: Frame
  does: 'begin' | 'ask'
  /** Leaves that begin because of this step begin this much later. */
  afterMs: number
}

export function createMachine(root: FlowNode, input: unknown, patterns: Patterns): Machine {
  const state: State = {
    input,
    patterns,
    root: rootFrame(root, input, patterns),
    steps: [],
    leaves: new Map(),
    fresh: new Map(),
    timed: new Map(),
    armed: [],
    dropped: [],
    watched: new Map(),
    toCome: new Map(),
    takenNames: new Set(root.id === undefined ? [] : [root.id]),
    results: {},
    parts: new Map(),
    made: new Map(),
    outcome: null,
  }
  return {
    begin: () => {
      state.steps.push({ frame: state.root, does: 'begin', afterMs: 0 })
      return freshLeaves(state)
    },
    settle: (leafId, settled) => {
      const frame = state.leaves.get(leafId)
      if (!frame) return []
      forget(state, frame)
      end(state, frame, outcomeOf(settled))
      return freshLeaves(state)
    },
    armed: () => state.armed.splice(0),
    isTimed: (id) => state.timed.has(id),
    isWithin: (leafId, id) => {
      let frame: Frame | null | undefined = state.leaves.get(leafId)
      while (frame && frame.id !== id) frame = frame.parent
      return frame?.id === id
    },
    expire: (id) => {
      const frame = state.timed.get(id)
      if (!frame) return []
      if (isOpenLeaf(state, frame)) dropLeaf(state, frame)
      end(state, frame, failed(`${partOf(state, frame)}: The time of this part of the flow was up.`))
      return freshLeaves(state)
    },
    dropped: () => state.dropped.splice(0),
    watched: () => state.watched,
    slow: (leafId) => {
      const frame = state.leaves.get(leafId)
      state.watched.delete(leafId)
      if (!frame?.parent) return []
      frame.parent.slow.add(frame.key)
      state.steps.push({ frame: frame.parent, does: 'ask', afterMs: 0 })
      return freshLeaves(state)
    },
    toCome: () => state.toCome.values().reduce((all, each) => all + each, 0),
    outcome: () => state.outcome,
  }
}

function outcomeOf(settled: LeafOutcome): NodeOutcome {
  if (settled.status === 'failed') {
    return settled.made === undefined ? failed(settled.error) : { ...failed(settled.error), made: settled.made }
  }
  const { status, value, tookMs } = settled
  return { status, value, error: null, ...(tookMs === undefined ? {} : { tookMs }) }
}

/** Takes all steps, and answers the leaves that have begun in them and are still wanted. */
function freshLeaves(state: State): FlowLeaf[] {
  for (let step = state.steps.pop(); step; step = state.steps.pop()) {
    // A step of this call may have ended or dropped the node, or a node around it.
    if (!isUnderWay(state, step.frame)) continue
    if (step.does === 'begin') begin(state, step.frame, step.afterMs)
    else advance(state, step.frame, step.afterMs)
  }
  const leaves = [...state.fresh.values()]
  state.fresh.clear()
  return leaves
}

/** A node that has ended or was dropped is not under way, and neither is any node within it. */
const isUnderWay = ({ root, outcome }: State, frame: Frame): boolean =>
  frame.parent ? frame.parent.under.get(frame.key) === frame : frame === root && outcome === null

function begin(state: State, frame: Frame, afterMs: number): void {
  const { node, id } = frame
  if (!isLeaf(node) && node.timeout !== undefined) {
    state.timed.set(id, frame)
    state.armed.push({ id, ms: node.timeout + afterMs })
  }
  if (isOneLeaf(state, node)) {
    state.leaves.set(id, frame)
    state.fresh.set(id, leafFor(state, frame, afterMs))
  } else advance(state, frame, afterMs)
}

/** A stream is one leaf to the machine. */
const isOneLeaf = ({ patterns }: State, node: FlowNode): boolean =>
  isLeaf(node) || patterns.of(node)?.stream !== undefined

const isOpenLeaf = ({ leaves }: State, frame: Frame): boolean => leaves.get(frame.id) === frame

function leafFor(state: State, frame: Frame, afterMs = 0): FlowLeaf {
  const { node } = frame
  const scope = scopeOf(state, frame)
  if (isLeaf(node)) return flowLeaf(frame, node, scope, afterMs)
  const stream = state.patterns.of(node)?.stream?.(node)
  if (!stream) throw new Error(`${frame.id} is no leaf.`)
  return streamLeaf(frame, stream, scope, afterMs)
}

const scopeOf = ({ input, results }: State, { previous, item }: Frame): Scope => ({ input, previous, item, results })

function advance(state: State, frame: Frame, afterMs: number): void {
  const move = askPattern(state, frame)
  if (move === 'wait') makeMove(state, frame, { start: [] }, afterMs)
  else if ('end' in move) end(state, frame, withPartName(state, frame, move.end))
  else makeMove(state, frame, move, afterMs)
}

/** A pattern that throws on its input has failed: a replay would only fail again. */
function askPattern(state: State, frame: Frame): Move {
  const { node, previous, children, nodes, under, slow } = frame
  const pattern = state.patterns.of(node) ?? state.patterns.made(node)
  if (!pattern?.next) return { end: failed(`This server does not know the pattern ${node.type}.`) }
  try {
    const render = (value: unknown): unknown => renderParts(value, scopeOf(state, frame))
    return pattern.next({ node, previous, children, nodes, open: under.size, slow, render })
  } catch (error) {
    return { end: failed(error instanceof Error ? error.message : String(error)) }
  }
}

/**
 * Drops and adds children. A node under way always has a child under way: a pattern that waits for nothing would wait
 * for ever.
 */
function makeMove(state: State, frame: Frame, move: StartMove, afterMs: number): void {
  const { start, drop: dropKeys = [], watch = [], toCome } = move
  if (toCome !== undefined) state.toCome.set(frame.id, toCome)
  const dropped = dropKeys.filter((key) => giveUp(state, frame, key))
  const tooMany = countMade(state, start, frame.node)
  const started = start.map((child) => frameOf(child, frame, state.patterns))
  const twice = started.find((child) => !add(state, frame, child))
  // The made nodes beside this one would go on, so the written node around them ends.
  if (tooMany !== null) fail(state, writtenAround(state, frame), tooMany)
  else if (twice) fail(state, frame, `The pattern has started the child ${twice.key} (${twice.id}) twice.`)
  else if (frame.under.size > 0) {
    for (const child of started.toReversed()) state.steps.push({ frame: child, does: 'begin', afterMs })
    for (const { key, ms } of watch) {
      const child = frame.under.get(key)
      if (child && isOneLeaf(state, child.node)) state.watched.set(child.id, ms)
    }
  } else if (dropped.length > 0) state.steps.push({ frame, does: 'ask', afterMs })
  else fail(state, frame, 'The pattern waits, and nothing is under way in it.')
}

/** False: the key or the name stands for another child already, so the outcomes of the two could not be told apart. */
function add({ takenNames }: State, parent: Frame, child: Frame): boolean {
  const hasName = child.isOwn === true && child.node.id !== undefined
  if (parent.children.has(child.key) || (hasName && takenNames.has(child.id))) return false
  if (hasName) takenNames.add(child.id)
  parent.children.set(child.key, null)
  parent.nodes.set(child.key, child.node)
  parent.under.set(child.key, child)
  return true
}

/** Counts the nodes that a pattern makes. Answers the problem if there are too many, else null. */
function countMade({ patterns, made }: State, started: readonly Child[], by: FlowNode): string | null {
  for (const { node } of started) if (patterns.made(node)) made.set(node.type, (made.get(node.type) ?? 0) + 1)
  const limit = patterns.made(by)
  return limit && (made.get(by.type) ?? 0) > limit.most ? limit.tooMany : null
}

/** A failure of the node itself. */
function fail(state: State, frame: Frame, problem: string): void {
  end(state, frame, failed(`${partOf(state, frame)}: ${problem}`))
}

function writtenAround({ patterns }: State, frame: Frame): Frame {
  let at = frame
  while (at.parent && patterns.made(at.node)) at = at.parent
  return at
}

/** The id that people gave the part, else the path to it. A made node has the name of the written node around it. */
function partOf(state: State, frame: Frame): string {
  const { node, id } = writtenAround(state, frame)
  return node.id ?? id
}

/** A failure of the part itself, and not of a part within it, names the part. */
function withPartName(state: State, frame: Frame, ended: NodeOutcome): NodeOutcome {
  if (ended.status !== 'failed') return ended
  for (const child of frame.children.values()) if (child?.error === ended.error) return ended
  return { ...ended, error: `${partOf(state, frame)}: ${ended.error}` }
}

/** Drops a child with all that is under way in it. False: the child is not under way. */
function giveUp(state: State, parent: Frame, key: string): boolean {
  const child = parent.under.get(key)
  if (!child) return false
  parent.under.delete(key)
  parent.children.set(key, failed('The task was given up for something else.'))
  drop(state, child)
  return true
}

/** Nobody waits for the results of the node and of the nodes within it any more. */
function drop(state: State, frame: Frame): void {
  dropWithin(state, frame)
  state.timed.delete(frame.id)
  dropLeaf(state, frame)
}

/** A leaf that nobody has been told to start is only forgotten. */
function dropLeaf(state: State, frame: Frame): void {
  const isKnown = isOpenLeaf(state, frame) && !state.fresh.has(frame.id)
  forget(state, frame)
  if (isKnown) state.dropped.push(leafFor(state, frame))
}

function dropWithin(state: State, frame: Frame): void {
  for (const child of frame.under.values()) drop(state, child)
  frame.under.clear()
}

function forget({ leaves, fresh, watched, toCome }: State, { id }: Frame): void {
  leaves.delete(id)
  fresh.delete(id)
  watched.delete(id)
  toCome.delete(id)
}

/** Ends the node. Children that are still under way are dropped. */
function end(state: State, frame: Frame, ended: NodeOutcome): void {
  dropWithin(state, frame)
  forget(state, frame)
  state.timed.delete(frame.id)
  const { node, parent, key } = frame
  const { id, retry } = node
  if (ended.status === 'failed' && retry && frame.attempt <= retry.max_retries && mayHelp(state, frame)) {
    const next = again(frame, state.patterns)
    if (parent) parent.under.set(key, next)
    else state.root = next
    state.steps.push({ frame: next, does: 'begin', afterMs: retry.backoff })
    return
  }
  if (id !== undefined && ended.status !== 'failed') keep(state, id, frame, ended.value)
  if (!parent) {
    state.outcome = ended
    return
  }
  parent.children.set(key, ended)
  parent.under.delete(key)
  state.steps.push({ frame: parent, does: 'ask', afterMs: 0 })
}

/** False if the node is given a placeholder whose value can never come, so each attempt would fail as this one. */
function mayHelp(state: State, frame: Frame): boolean {
  const { node, each } = frame
  const scope = scopeOf(state, frame)
  if (!isLeaf(node)) {
    const parts = state.patterns.of(node)?.parts(node) ?? []
    return !parts.some((part) => 'given' in part && isHopeless(part.given, scope))
  }
  const given = givenTo(node)
  return !(each ?? [frame.item]).some((item) => isHopeless(given, { ...scope, item }))
}

/** The parts of a list are kept as a list. Of any other node the last value is kept. */
function keep({ results, parts }: State, id: string, { parent, part }: Frame, value: unknown): void {
  if (!part) {
    results[id] = value
    return
  }
  const known = parts.get(id)
  const list = known && known.of === parent ? known.list : []
  list[part.place] = value
  parts.set(id, { of: parent, list })
  results[id] = list
}
