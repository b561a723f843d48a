// The time that a flow should take, computed from its tree alone, for flows that have not completed often enough. An
// agent, and a function that asks a model, need one model call of 5 s; any other function 1 s, however many items it is
// given at once. Retries are not counted.

import { type FlowNode, isLeaf, type Leaf, type Work } from '../../kernel/flow.ts'
import { LONGEST_MS } from '../../kernel/limits.ts'
import type { Patterns, Times } from '../machine/pattern.ts'
import { valueNamed } from '../machine/render.ts'
import { CONDENSED_AT_ONCE, MODEL_CALL_MS } from '../machine/workload.ts'

const FUNCTION_MS = 1_000
/** The assumed number of items of a function, or of pieces of a problem, if the number cannot be known. */
const ASSUMED = 10
/** The assumed number of leaves under way at once, if the run does not say. */
const USUAL_WORKERS = 50

export interface Unmeasured {
  root: FlowNode
  input: unknown
  /** The most leaves under way at once; null if the run does not say. */
  workers: number | null
}

/** Milliseconds. */
export function expectedDuration({ root, input, workers }: Unmeasured, patterns: Patterns): number {
  const facts: Facts = { input, width: workers ?? USUAL_WORKERS }
  const { width } = facts
  const times: Times = {
    of: (node) => {
      const ms = isLeaf(node) ? leafTime(node, facts) : (patterns.of(node)?.expectedMs(node, times) ?? 0)
      return Math.min(ms, node.timeout ?? LONGEST_MS)
    },
    work: (work, items) => workTime(work, facts, items),
    count: (items) => listOf(items, facts)?.length ?? ASSUMED,
    atOnce: (each, most = width) => spread(each, Math.min(width, most)),
    inTurn: sum,
    assumed: ASSUMED,
    modelCallMs: MODEL_CALL_MS,
  }
  return Math.min(LONGEST_MS, Math.ceil(times.of(root)))
}

interface Facts {
  input: unknown
  width: number
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

/** The number of items in the arguments of a built-in function, or in its share; null if the arguments have no list. */
function itemsOf(args: unknown, facts: Facts): number | null {
  if (args === null || typeof args !== 'object' || !('items' in args)) return null
  const items = listOf(args.items, facts)
  if (!items) return null
  const share = 'share' in args ? args.share : null
  const parts = share !== null && typeof share === 'object' && 'of' in share ? Number(share.of) || 1 : 1
  return Math.ceil(items.length / parts)
}

/** A list that is given as it stands or found in the input; results of leaves are not there yet. */
function listOf(items: unknown, { input }: Facts): unknown[] | null {
  const found = typeof items === 'string' ? valueNamed(items, { input, previous: input, results: {} }) : items
  return Array.isArray(found) ? found : null
}

/** The time with `width` workers: no less than the longest takes, and no less than an equal share of all. */
const spread = (times: readonly number[], width: number): number =>
  times.length === 0 ? 0 : Math.max(longestOf(times), sum(times) / Math.max(1, width))

const sum = (times: readonly number[]): number => times.reduce((all, each) => all + each, 0)
const longestOf = (times: readonly number[]): number => times.reduce((longest, each) => Math.max(longest, each), 0)
