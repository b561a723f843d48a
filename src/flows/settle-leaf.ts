// Tells the machine and the journal the outcomes of leaves, with all that follows from them.
import type { FlowEvent } from '../kernel/flow-run.ts'
import { jsonSize } from '../kernel/json-size.ts'
import { runIdsOf } from './agent-leaves.ts'
import { isAgentTask } from './begin-leaf.ts'
import type { Session } from './flow-session.ts'
import { expire, type FlowStanding, nameOf, settle } from './flow-standing.ts'
import { withdraw } from './handouts.ts'
import type { LeafOutcome, LeafTask } from './machine.ts'

export function take(
  { standing }: Session,
  events: FlowEvent[],
  task: LeafTask,
  given: LeafOutcome,
  startedAtMs: number,
): void {
  if (!standing.running.has(task.id)) return
  const outcome = withinRoom(standing, given)
  const shared = recordOf(task, startedAtMs)
  events.push(
    outcome.status === 'completed'
      ? { kind: 'task.completed', data: { ...shared, ...resultOf(outcome) } }
      : { kind: 'task.failed', data: { ...shared, error: outcome.error } },
  )
  standing.pools.done(task, shared.duration, outcome.status === 'completed')
  const next = settle(standing, task, { ...outcome, tookMs: shared.duration })
  standing.fresh.push(...next)
  events.push(...untold(standing))
}

/** The most that the results of one flow run may take in all. */
const MOST_HELD_BYTES = 256 * 1_048_576

/** One tenant's results must not take the memory of all. A refused one is recorded as a failure, for every replay. */
function withinRoom({ heldBytes }: FlowStanding, outcome: LeafOutcome): LeafOutcome {
  if (outcome.status === 'failed' || heldBytes + jsonSize(outcome.value).bytes <= MOST_HELD_BYTES) return outcome
  return { status: 'failed', error: `The results of this flow run take more than ${MOST_HELD_BYTES} bytes (256 MiB).` }
}

const resultOf = ({ value, onRecord }: Extract<LeafOutcome, { status: 'completed' }>) =>
  onRecord ? { result: null, on_record: onRecord } : { result: value }

const recordOf = (task: LeafTask, startedAtMs: number) => ({
  task_id: task.id,
  node_id: task.nodeId,
  attempt: task.attempt,
  duration: Math.max(0, Date.now() - startedAtMs),
})

export function expireNode({ standing }: Session, events: FlowEvent[], node: string): void {
  const before = standing.dropped.length
  const next = expire(standing, node)
  if (next.length === 0 && standing.dropped.length === before && !standing.machine.outcome()) return
  standing.fresh.push(...next)
  events.push({ kind: 'node.expired', data: { node } }, ...untold(standing))
}

/** The events of leaves that nobody waits for any more, and that the journal has not been told of. */
export function untold(standing: FlowStanding): FlowEvent[] {
  return standing.dropped
    .filter((entry) => !entry.isTold)
    .map((entry): FlowEvent => {
      entry.isTold = true
      const { task, as } = entry
      const begunAtMs = standing.begun.get(nameOf(task))
      if (as === 'skipped' || begunAtMs === undefined) {
        standing.toldSkipped.add(task.id)
        return { kind: 'task.skipped', data: { task_id: task.id } }
      }
      return { kind: 'task.failed', data: { ...recordOf(task, begunAtMs), error: 'The time of its part was up.' } }
    })
}

/** Called after the journal knows of them: the next owner of the flow would wait for them otherwise. */
export async function stopDropped({ standing, flow, deps, signals, handedOut }: Session): Promise<void> {
  const dropped = standing.dropped.splice(0).map(({ task }) => task)
  for (const { id } of dropped) signals.get(id)?.abort()
  const begun = dropped.filter((task) => isAgentTask(task) && standing.begun.has(nameOf(task)))
  const runIds = begun.flatMap((task) => runIdsOf(flow.id, task))
  if (runIds.length > 0) await deps.cancelRuns(flow.project_id, runIds)
  const handed = dropped.map(({ id }) => id).filter((id) => handedOut.delete(id))
  if (handed.length > 0) await withdraw(deps.pool, flow.id, handed)
}
