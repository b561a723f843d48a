// The time a flow should take, told from its tree alone: for flows that have not completed often enough to know better.
// An agent, and a function that asks a model, are taken to need one model call of 5 s, as in a recommendation; any other
// function 1 s, however much it is given at once. Nothing is tried again.
import type { FlowNode, Leaf, Work } from '../kernel/flow.ts'
import { render } from './render.ts'

const MODEL_CALL_MS = 5_000
const FUNCTION_MS = 1_000
/** The assumed number of items of a function, or of pieces of a problem, where nobody can say. */
const ASSUMED = 10
/** Leaves under way at once, where the run does not say. */
const USUAL_WORKERS = 50
/** The number of texts that muster.condense puts together in one call. */
const CONDENSED_AT_ONCE = 12
const LONGEST_MS = 2_147_483_647

export interface Unmeasured {
  root: FlowNode
  input: unknown
  /** The most leaves under way at once; null where nobody said. */
  workers: number | null
}

/** Milliseconds. */
export function expectedDuration({ root, input, workers }: Unmeasured): number {
  const facts: Facts = { input, width: workers ?? USUAL_WORKERS }
  return Math.min(LONGEST_MS, Math.ceil(timeOf(root, facts)))
}

interface Facts {
  input: unknown
  width: number
}

function timeOf(node: FlowNode, facts: Facts): number {
  const ms = node.type === 'task' ? leafTime(node, facts) : patternTime(node, facts)
  return Math.min(ms, node.timeout ?? LONGEST_MS)
}

function patternTime(node: Exclude<FlowNode, Leaf>, facts: Facts): number {
  const { width } = facts
  const all = (nodes: readonly FlowNode[]): number[] => nodes.map((each) => timeOf(each, facts))
  switch (node.type) {
    case 'sequential':
      return sum(all(node.steps))
    case 'parallel': {
      const isOurs = node.aggregate === undefined || ['array', 'merge', 'concat'].includes(String(node.aggregate))
      return spread(all(node.branches), width) + (isOurs ? 0 : workTime(node.aggregate, facts))
    }
    case 'loop':
      // A loop that needs all its rounds is not late.
      return node.max_iterations * (timeOf(node.body, facts) + workTime(node.until, facts))
    case 'map_reduce': {
      const items = countOf(node.items, facts)
      const parts = Math.min(node.workers, items)
      const each = workTime(node.map, facts, Math.ceil(items / Math.max(1, parts)))
      const mapping = spread(Array<number>(parts).fill(each), width)
      const isOurs = node.partition === undefined || node.partition === 'hash' || node.partition === 'range'
      return mapping + (isOurs ? 0 : workTime(node.partition, facts)) + workTime(node.reduce, facts, items)
    }
    case 'pipeline': {
      const stages = node.stages.map((stage) => leafTime(stage, facts))
      // All wait for the slowest, and the last item goes through every stage.
      return sum(stages) + Math.max(0, countOf(node.source, facts) - 1) * Math.max(...stages)
    }
    case 'fork_join': {
      const piece = workTime(node.should_split, facts) + workTime(node.solve, facts)
      const solving = spread(Array<number>(ASSUMED).fill(piece), Math.min(width, node.workers))
      return workTime(node.split, facts) + solving + workTime(node.join, facts, ASSUMED)
    }
    case 'hierarchical':
      // She plans, they work at once, she judges.
      return 3 * MODEL_CALL_MS
    case 'adaptive': {
      const workers = typeof node.workers === 'number' ? node.workers : node.workers.length
      return spread(all(node.tasks), Math.min(width, workers))
    }
  }
}

const workTime = (work: Work | undefined, facts: Facts, items = 1): number => {
  if (work === undefined) return 0
  return typeof work === 'string' ? functionTime(work, items) : leafTime(work, facts, items)
}

function leafTime(leaf: Leaf, facts: Facts, items = 1): number {
  if ('agent' in leaf) return MODEL_CALL_MS
  return functionTime(leaf.function, itemsOf(leaf.args, facts) ?? items)
}

function functionTime(name: string, items: number): number {
  switch (name) {
    case 'muster.ask':
    case 'muster.ask_list':
      return MODEL_CALL_MS
    case 'muster.ask_each':
      return Math.max(1, items) * MODEL_CALL_MS
    case 'muster.condense':
      return Math.max(1, Math.ceil(items / CONDENSED_AT_ONCE)) * MODEL_CALL_MS
    default:
      return FUNCTION_MS
  }
}

/** The number of items in the arguments of a built-in function, or in its share of them; null where they do not say. */
function itemsOf(args: unknown, facts: Facts): number | null {
  if (args === null || typeof args !== 'object' || !('items' in args)) return null
  const items = listOf(args.items, facts)
  if (!items) return null
  const share = 'share' in args ? args.share : null
  const parts = share !== null && typeof share === 'object' && 'of' in share ? Number(share.of) || 1 : 1
  return Math.ceil(items.length / parts)
}

const countOf = (items: unknown, facts: Facts): number => listOf(items, facts)?.length ?? ASSUMED

/** A list that is given as it stands or found in the input; results of leaves are not there yet. */
function listOf(items: unknown, { input }: Facts): unknown[] | null {
  const found = typeof items === 'string' ? render(items, { input, previous: input, results: {} }) : items
  return Array.isArray(found) ? found : null
}

/** Things that may be done at once by so many: no sooner than the longest, and than an equal share of all. */
const spread = (times: readonly number[], width: number): number =>
  times.length === 0 ? 0 : Math.max(longestOf(times), sum(times) / Math.max(1, width))

const sum = (times: readonly number[]): number => times.reduce((all, each) => all + each, 0)
const longestOf = (times: readonly number[]): number => times.reduce((longest, each) => Math.max(longest, each), 0)
