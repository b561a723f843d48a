// Gives the outcomes of leaves to the machine, and journals them with all that follows from them.
import { defined } from '../../kernel/defined.ts'
import type { FlowEvent } from '../../kernel/flow-run.ts'
import { jsonSize } from '../../kernel/json-size.ts'
import type { FlowLeaf } from '../machine/flow-leaf.ts'
import type { LeafOutcome } from '../machine/machine.ts'
import { callsOfLeaf } from './leaf-calls.ts'
import type { OwnedFlow } from './owned-flow.ts'
import { attemptKey, expire, type FlowState, settle } from './state.ts'
import { stopLeaves } from './stop-leaves.ts'

export function takeOutcome(
  { state }: OwnedFlow,
  events: FlowEvent[],
  leaf: FlowLeaf,
  given: LeafOutcome,
  startedAtMs: number,
): void {
  if (!state.running.has(leaf.id)) return
  const bytes = given.status === 'completed' ? jsonSize(given.value).bytes : 0
  const outcome = withinRoom(state, given, bytes)
  const shared = recordOf(leaf, startedAtMs)
  events.push(
    outcome.status === 'completed'
      ? {
          kind: 'task.completed',
          data: { ...shared, ...resultOf(outcome), ...partOf(leaf), ...callsOfLeaf(leaf, outcome) },
        }
      : { kind: 'task.failed', data: { ...shared, error: outcome.error, ...defined({ made: outcome.made }) } },
  )
  state.pools.done(leaf, shared.duration, outcome.status === 'completed')
  const next = settle(state, leaf, { ...outcome, tookMs: shared.duration }, bytes)
  state.fresh.push(...next)
  events.push(...takeUntold(state))
}

/** The most bytes that the results of one flow run may take together. */
const MOST_HELD_BYTES = 256 * 1_048_576

/** Refuses results that are too large together: one tenant must not take the memory of all. The refusal is recorded. */
function withinRoom({ heldBytes }: FlowState, outcome: LeafOutcome, bytes: number): LeafOutcome {
  if (outcome.status === 'failed' || heldBytes + bytes <= MOST_HELD_BYTES) return outcome
  return { status: 'failed', error: `The results of this flow run take more than ${MOST_HELD_BYTES} bytes (256 MiB).` }
}

const resultOf = ({ value, onRecord }: Extract<LeafOutcome, { status: 'completed' }>) =>
  onRecord ? { result: null, on_record: onRecord } : { result: value }

/** The part is journalled only for leaves with an id, because people look for no other results. */
const partOf = ({ part, nodeId }: FlowLeaf) => (part === null || nodeId === null ? {} : { part })

const recordOf = (leaf: FlowLeaf, startedAtMs: number) => ({
  task_id: leaf.id,
  node_id: leaf.nodeId,
  attempt: leaf.attempt,
  duration: Math.max(0, Date.now() - startedAtMs),
})

export function expireNode({ state }: OwnedFlow, events: FlowEvent[], node: string): void {
  const before = state.dropped.length
  const next = expire(state, node)
  if (next.length === 0 && state.dropped.length === before && !state.machine.outcome()) return
  state.fresh.push(...next)
  events.push({ kind: 'node.expired', data: { node } }, ...takeUntold(state))
}

/** Takes the events of leaves whose results nobody waits for any more; each is taken once. */
export function takeUntold(state: FlowState): FlowEvent[] {
  return state.dropped
    .filter((entry) => !entry.isTold)
    .map((entry): FlowEvent => {
      entry.isTold = true
      const { leaf, as } = entry
      const begunAtMs = state.begun.get(attemptKey(leaf))
      if (as === 'skipped' || begunAtMs === undefined) {
        state.toldSkipped.add(leaf.id)
        return { kind: 'task.skipped', data: { task_id: leaf.id } }
      }
      return {
        kind: 'task.failed',
        data: { ...recordOf(leaf, begunAtMs), error: 'The time of the part around this task was up.' },
      }
    })
}

/** Stops dropped leaves, once the journal has them: the next owner would wait for them otherwise. */
export async function stopDropped(owned: OwnedFlow): Promise<void> {
  const dropped = owned.state.dropped.splice(0).map(({ leaf }) => leaf)
  if (dropped.length > 0) await stopLeaves(owned, dropped)
}
