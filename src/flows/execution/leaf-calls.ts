// The calls of a function leaf as its flow run's journal has them. From there people and fresh starts learn what was done.
import { jsonSize } from '../../kernel/json-size.ts'
import type { FlowLeaf } from '../machine/flow-leaf.ts'
import type { LeafOutcome } from '../machine/machine.ts'

/** A leaf with more calls has the first of them on record. */
const MAX_CALLS = 1_000
/** Larger arguments are left out: the leaf's own record would be twice as large. */
const MAX_ARGS_BYTES = 16_384

/** The functions of Muster itself have no effect. */
const hasEffect = (name: string): boolean => !name.startsWith('muster.')

export function callsOfLeaf(leaf: FlowLeaf, outcome: LeafOutcome) {
  if (outcome.status === 'failed' || !outcome.keys || !('function' in leaf.node)) return {}
  const name = leaf.node.function
  if (!hasEffect(name)) return {}
  const keys = outcome.keys.slice(0, MAX_CALLS)
  const isList = leaf.isEach ? { is_list: true as const } : {}
  return { called: { function: name, keys, ...argumentsOf(leaf, keys.length), ...isList } }
}

function argumentsOf(leaf: FlowLeaf, calls: number): { args?: unknown[] } {
  const args: unknown[] = []
  let room = MAX_ARGS_BYTES
  for (let place = 0; place < calls; place++) {
    const argument = leaf.argumentOf(place) ?? null
    room -= jsonSize(argument, { bytes: room, nodes: Number.POSITIVE_INFINITY }).bytes
    if (room < 0) return {}
    args.push(argument)
  }
  return { args }
}
