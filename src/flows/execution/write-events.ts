// Writes events of a flow run in parts of a bounded size.
import { fault } from '../../kernel/fault.ts'
import type { FlowEvent } from '../../kernel/flow-run.ts'
import { jsonSize } from '../../kernel/json-size.ts'
import { appendToFlow, type OwnedFlow } from './owned-flow.ts'
import { progressOf } from './state.ts'

/** True: somebody has asked for the end. */
export async function writeEvents(owned: OwnedFlow, events: readonly FlowEvent[]): Promise<boolean> {
  const { state, newTopology } = owned
  if (events.length === 0 && newTopology === null) return false
  if (events.some((event) => event.kind === 'topology.switched')) await fault('topology.mid_switch')
  owned.newTopology = null
  const parts = inParts(events)
  const last = parts.pop() ?? []
  for (const part of parts) await appendToFlow(owned, part, {})
  return appendToFlow(owned, last, {
    progress: progressOf(state, false),
    ...(newTopology === null ? {} : { topology_in_force: newTopology }),
  })
}

/** The most bytes that are serialised at once. One leaf's result may be twice as large. */
const MOST_AT_ONCE_BYTES = 8 * 1_048_576

/**
 * Cuts the events into parts. The first parts may be on record without the rest, because the events that follow from a
 * leaf come after it.
 */
function inParts(events: readonly FlowEvent[]): FlowEvent[][] {
  // One result is written at once, whatever its size.
  if (events.filter(isResult).length <= 1) return [[...events]]
  const parts: FlowEvent[][] = [[]]
  let bytes = 0
  for (const event of events) {
    const { bytes: own } = jsonSize(isResult(event) ? event.data.result : null)
    if (bytes > 0 && bytes + own > MOST_AT_ONCE_BYTES) {
      parts.push([])
      bytes = 0
    }
    parts.at(-1)?.push(event)
    bytes += own
  }
  return parts
}

const isResult = (event: FlowEvent): event is Extract<FlowEvent, { kind: 'task.completed' }> =>
  event.kind === 'task.completed'
