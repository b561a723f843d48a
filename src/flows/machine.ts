// A flow run as a pure machine: told the outcomes of its leaves, it answers which leaves are to be started, and in the
// end how the flow ended. It calls nothing, waits for nothing and writes nothing, so a replay of the outcomes gives the
// same machine: that is how a flow goes on after a crash.
import { type FlowNode, type Leaf, MOST_PIECES } from '../kernel/flow.ts'
import { type LeafFrame, type LeafTask, leafTask, streamTask } from './leaf-task.ts'
import { type Child, failed, type MachineNode, type Move, type Outcome, type Pattern } from './pattern.ts'
import { adaptive } from './patterns/adaptive.ts'
import { forkJoin, piece } from './patterns/fork-join.ts'
import { hierarchical } from './patterns/hierarchical.ts'
import { loop } from './patterns/loop.ts'
import { mapReduce } from './patterns/map-reduce.ts'
import { parallel } from './patterns/parallel.ts'
import { sequential } from './patterns/sequential.ts'
import { renderParts, type Scope } from './render.ts'

export type { LeafTask } from './leaf-task.ts'

export interface Machine {
  begin(): LeafTask[]
  /** The leaves that may start because this leaf has ended. Unknown and settled leaves are ignored. */
  settle(taskId: string, outcome: LeafOutcome): LeafTask[]
  /** Patterns with a timeout that began since the last call. */
  armed(): { id: string; ms: number }[]
  /** The pattern has a timeout, and is under way. */
  isTimed(id: string): boolean
  /** The time of a pattern is up: the pattern has failed, with everything in it. Ignored where it has ended. */
  expire(id: string): LeafTask[]
  /** Leaves that nobody waits for any more, since the last call. */
  dropped(): LeafTask[]
  /** Leaves that count as slow when they are still under way so long after they began: `slow` is to be called then. */
  watched(): ReadonlyMap<string, number>
  /** Ignored where the leaf has ended. */
  slow(taskId: string): LeafTask[]
  /** Null while leaves are under way. */
  outcome(): Outcome | null
}

export type LeafOutcome =
  /** The value is on record already: in the pages of a source, or in the items that the last stage gave. */
  | { status: 'completed'; value: unknown; tookMs?: number; onRecord?: 'pages' | 'items' }
  | { status: 'failed'; error: string; tookMs?: number }

interface Frame extends LeafFrame {
  parent: Frame | null
  key: string
  /** The iteration of each loop around the node, and the attempt of each pattern with a retry, from the outside in. */
  lives: readonly string[]
  children: Map<string, Outcome | null>
  nodes: Map<string, MachineNode>
  slow: Set<string>
  open: number
}

type AnyPattern = Pattern<MachineNode>
// Each entry takes the nodes of its own type, by which it is found.
const patterns = {
  sequential,
  parallel,
  loop,
  map_reduce: mapReduce,
  fork_join: forkJoin,
  piece,
  hierarchical,
  adaptive,
} as unknown as Record<string, AnyPattern | undefined>

export function createMachine(root: FlowNode, input: unknown): Machine {
  const leaves = new Map<string, Frame>()
  /** Patterns under way that have a timeout. */
  const timed = new Map<string, Frame>()
  let armed: { id: string; ms: number }[] = []
  let dropped: LeafTask[] = []
  const watched = new Map<string, number>()
  const results: Record<string, unknown> = {}
  /** The results of the parts of a map or a reduce, by the id of the leaf. */
  const parts = new Map<string, { of: Frame | null; list: unknown[] }>()
  let pieces = 0
  let outcome: Outcome | null = null

  return {
    begin: () => start(frameOf({ key: 'root', node: root, previous: input }, null, [])),
    settle: (taskId, settled) => {
      const frame = leaves.get(taskId)
      if (!frame || outcome) return []
      leaves.delete(taskId)
      watched.delete(taskId)
      if (settled.status === 'failed') return end(frame, failed(settled.error))
      const { status, value, tookMs } = settled
      return end(frame, { status, value, error: null, ...(tookMs === undefined ? {} : { tookMs }) })
    },
    armed: () => {
      const taken = armed
      if (taken.length > 0) armed = []
      return taken
    },
    isTimed: (id) => timed.has(id),
    expire: (id) => {
      const frame = timed.get(id)
      if (!frame || outcome) return []
      drop(frame)
      return end(frame, failed(`${partOf(frame)}: The time of this part of the flow was up.`))
    },
    dropped: () => {
      const taken = dropped
      dropped = []
      return taken
    },
    watched: () => watched,
    slow: (taskId) => {
      const frame = leaves.get(taskId)
      watched.delete(taskId)
      if (!frame?.parent || outcome) return []
      frame.parent.slow.add(frame.key)
      return advance(frame.parent)
    },
    outcome: () => outcome,
  }

  /** Drops all leaves under way within the frame: nobody waits for them any more. */
  function drop(within: Frame): void {
    for (const [id, leaf] of leaves) {
      if (!isWithin(leaf, within)) continue
      leaves.delete(id)
      watched.delete(id)
      dropped.push(taskFor(leaf))
    }
    for (const [id, frame] of timed) if (frame !== within && isWithin(frame, within)) timed.delete(id)
  }

  function start(frame: Frame, afterMs = 0): LeafTask[] {
    if (frame.node.type !== 'task') {
      const timeout = 'timeout' in frame.node ? frame.node.timeout : undefined
      if (timeout !== undefined) {
        timed.set(frame.id, frame)
        armed.push({ id: frame.id, ms: timeout + afterMs })
      }
      if (frame.node.type !== 'pipeline') return advance(frame, afterMs)
    }
    leaves.set(frame.id, frame)
    return [taskFor(frame, afterMs)]
  }

  function taskFor(frame: Frame, afterMs = 0): LeafTask {
    const { node } = frame
    return node.type === 'pipeline'
      ? streamTask(frame, node, scopeOf(frame), afterMs)
      : leafTask(frame, node as Leaf, scopeOf(frame), afterMs) // asked by whoever calls
  }

  /** Asks the pattern until it waits or ends. */
  function advance(frame: Frame, afterMs = 0): LeafTask[] {
    const pattern = patterns[frame.node.type]
    if (!pattern) return end(frame, failed(`This server does not know the pattern ${frame.node.type}.`))
    const move = askPattern(pattern, frame)
    if (move === 'wait') return []
    if ('end' in move) return end(frame, named(frame, move.end))
    for (const key of move.drop ?? []) giveUp(frame, key)
    pieces += move.start.filter((child) => child.node.type === 'piece').length
    if (pieces > MOST_PIECES && frame.node.type === 'piece') return endFork(frame)
    const started = move.start.map((child) => frameOf(child, frame, livesOf(frame, child.key)))
    for (const child of started) {
      frame.children.set(child.key, null)
      frame.nodes.set(child.key, child.node)
    }
    frame.open += started.length
    const tasks = started.flatMap((child) => start(child, afterMs))
    for (const { key, ms } of move.watch ?? []) watch(frame, key, ms)
    return tasks
  }

  /** A pattern that throws on its input has failed: a replay would only fail again. */
  function askPattern(pattern: AnyPattern, frame: Frame): Move {
    const { node, previous, children, nodes, open, slow } = frame
    try {
      const rendering = (value: unknown): unknown => renderParts(value, scopeOf(frame))
      return pattern({ node, previous, children, nodes, open, slow, render: rendering })
    } catch (error) {
      drop(frame)
      return { end: failed(error instanceof Error ? error.message : String(error)) }
    }
  }

  /** Ends the whole fork with all that is under way: the pieces beside this one would go on splitting. */
  function endFork(within: Frame): LeafTask[] {
    let fork = within
    while (fork.node.type === 'piece' && fork.parent) fork = fork.parent
    drop(fork)
    return end(fork, failed(`${partOf(fork)}: The problem was split into more than ${MOST_PIECES} pieces.`))
  }

  function leafUnder(parent: Frame, key: string): Frame | undefined {
    return leaves.get(`${parent.id}/${key}`)
  }

  function watch(parent: Frame, key: string, ms: number): void {
    const leaf = leafUnder(parent, key)
    if (leaf) watched.set(leaf.id, ms)
  }

  function giveUp(parent: Frame, key: string): void {
    const leaf = leafUnder(parent, key)
    if (!leaf) return
    drop(leaf)
    parent.children.set(key, failed('It was given up for something else.'))
    parent.open--
  }

  function end(frame: Frame, ended: Outcome): LeafTask[] {
    timed.delete(frame.id)
    const retry = 'retry' in frame.node ? frame.node.retry : undefined
    if (ended.status === 'failed' && retry && frame.attempt <= retry.max_retries) {
      return start(again(frame), retry.backoff)
    }
    const { id } = frame.node as FlowNode // a piece has none
    const { parent } = frame
    if (id !== undefined && ended.status !== 'failed') keep(id, frame, ended.value)
    if (!parent) {
      outcome = ended
      return []
    }
    parent.children.set(frame.key, ended)
    parent.open--
    return advance(parent)
  }

  /** The parts of a map or a reduce are kept as a list, in their order; of any other node the last value is kept. */
  function keep(id: string, { parent, key }: Frame, value: unknown): void {
    const place =
      parent?.node.type === 'map_reduce' ? Number(/^(?:map|reduce) (\d+)$/.exec(key)?.[1] ?? Number.NaN) : Number.NaN
    if (Number.isNaN(place)) {
      results[id] = value
      return
    }
    const known = parts.get(id)
    const list = known && known.of === parent ? known.list : []
    list[place] = value
    parts.set(id, { of: parent, list })
    results[id] = list
  }

  function scopeOf({ previous, item }: Frame): Scope {
    return { input, previous, item, results }
  }
}

/** A failure of the part itself, and not of a part within it, names the part. */
function named(frame: Frame, ended: Outcome): Outcome {
  if (ended.status !== 'failed') return ended
  for (const child of frame.children.values()) if (child?.error === ended.error) return ended
  return { ...ended, error: `${partOf(frame)}: ${ended.error}` }
}

/** A part is named by the id that people gave it, else by the path to it. Pieces are named as their fork. */
function partOf(frame: Frame): string {
  let at = frame
  while (at.node.type === 'piece' && at.parent) at = at.parent
  return (at.node as FlowNode).id ?? at.id // no piece
}

function isWithin(frame: Frame, outer: Frame): boolean {
  for (let at: Frame | null = frame; at; at = at.parent) if (at === outer) return true
  return false
}

function frameOf(child: Child, parent: Frame | null, around: readonly string[]): Frame {
  const { key, node, previous, item, each, isSource = false, answer = null, after = [] } = child
  const lives = canLiveAgain(node) ? [...around, '~1'] : around
  return {
    id: idOf({ node, key, parent, lives, attempt: 1 }),
    node,
    parent,
    key,
    previous,
    item,
    each,
    isSource,
    answer,
    after,
    lives,
    attempt: 1,
    ...unbegun(),
  }
}

/** A node without an id of its own, or whose id stands for many, is identified by the path to it. */
function idOf({ node, key, parent, lives, attempt }: Pick<Frame, 'node' | 'key' | 'parent' | 'lives' | 'attempt'>) {
  const name = parent === null || isOwn(parent.node, key) ? nameIn(node) : undefined
  if (name !== undefined) return `${name}${markOf(lives)}`
  const way = parent ? `${parent.id}/${key}` : key
  return attempt === 1 || !canLiveAgain(node) ? way : `${way}~${attempt}`
}

const unbegun = (): Pick<Frame, 'children' | 'nodes' | 'slow' | 'open'> => ({
  children: new Map(),
  nodes: new Map(),
  slow: new Set(),
  open: 0,
})

/** A leaf that is tried again keeps its id; only a pattern has several lives. */
const canLiveAgain = (node: MachineNode): boolean => node.type !== 'task' && 'retry' in node && node.retry !== undefined

const nameIn = (node: MachineNode): string | undefined => ('id' in node ? node.id : undefined)

/** The child is a node of the tree as it was written, and not work that is done for many items. */
const isOwn = (node: MachineNode, key: string): boolean =>
  /^\d+$/.test(key) && ['sequential', 'parallel', 'loop', 'adaptive'].includes(node.type)

/** In each iteration of a loop everything within it lives anew. */
const livesOf = (parent: Frame, key: string): readonly string[] =>
  parent.node.type === 'loop' && /^\d+$/.test(key) ? [...parent.lives, `#${key}`] : parent.lives

/** The first life of all needs no mark. Any other life is marked with all lives around it, each in its place. */
const markOf = (lives: readonly string[]): string =>
  lives.every((life) => life === '#1' || life === '~1') ? '' : lives.join('')

/** The same node once more. A leaf keeps its id; the children of a pattern belong to another life. */
function again(frame: Frame): Frame {
  const attempt = frame.attempt + 1
  if (!canLiveAgain(frame.node)) return { ...frame, attempt }
  const next = { ...frame, attempt, lives: [...frame.lives.slice(0, -1), `~${attempt}`] }
  return { ...next, id: idOf(next), ...unbegun() }
}
