// The end of a flow run: its last events, among them the events of leaves that never began.
import type { FlowEvent } from '../../kernel/flow-run.ts'
import { isMore, jsonSize } from '../../kernel/json-size.ts'
import type { Log } from '../../kernel/log.ts'
import { measuredTopologies } from '../history/topology.ts'
import { createPlaces } from '../machine/leaf-places.ts'
import type { ClaimedFlow } from './claim.ts'
import type { FlowChange } from './journal.ts'
import { appendToFlow, FlowLost, type OwnedFlow } from './owned-flow.ts'
import { type FlowState, progressOf, unbegun } from './state.ts'

export type FlowEnd =
  | { status: 'completed' | 'partial'; value: unknown; error: null; problems?: readonly string[] }
  | { status: 'failed' | 'cancelled' | 'timed_out'; error: string | null }

/** The largest output of a flow, which is written as one value. */
const MOST_OUTPUT = { bytes: 64 * 1_048_576, nodes: 2_000_000 }

function withinRoom(ended: FlowEnd): FlowEnd {
  if (!('value' in ended)) return ended
  const size = jsonSize(ended.value, MOST_OUTPUT)
  if (!isMore(size, MOST_OUTPUT)) return ended
  const most = size.bytes > MOST_OUTPUT.bytes ? `${MOST_OUTPUT.bytes} bytes (64 MiB)` : `${MOST_OUTPUT.nodes} values`
  return { status: 'failed', error: `The output of the flow takes more than ${most}.` }
}

/** A cancel that was asked for before this end is written wins: the flow run ends as cancelled. */
export async function endFlow(owned: OwnedFlow, events: readonly FlowEvent[], given: FlowEnd): Promise<void> {
  const ended = withinRoom(given)
  const mayBeRefused = ended.status !== 'cancelled'
  try {
    await writeEnd(owned, events, ended, mayBeRefused ? { unless_cancelled: true } : {})
  } catch (error) {
    if (!mayBeRefused || !(error instanceof FlowLost) || !(await isCancelled(owned))) throw error
    await endFlow(owned, events, { status: 'cancelled', error: null })
  }
}

async function isCancelled({ deps, flow }: OwnedFlow): Promise<boolean> {
  const { rowCount } = await deps.pool.query(
    'select from flow_runs where id = $1 and fence = $2 and cancel_requested_at is not null',
    [flow.id, flow.fence],
  )
  return rowCount === 1
}

async function writeEnd(
  owned: OwnedFlow,
  events: readonly FlowEvent[],
  ended: FlowEnd,
  condition: Pick<FlowChange, 'unless_cancelled'>,
): Promise<void> {
  const { state, deps } = owned
  const isDone = ended.status === 'completed' || ended.status === 'partial'
  const progress = progressOf(state, true)
  const skipped = progress.skipped === 0 ? [] : skippedEvents(owned)
  const error = errorOf(state, ended)
  const last: FlowEvent = isDone
    ? { kind: `flow.${ended.status}` as 'flow.completed', data: { output: 'value' in ended ? ended.value : null } } // one of two
    : { kind: `flow.${ended.status}` as 'flow.failed', data: { error } }
  const before = [...events, ...skipped]
  const measured = await measuredTopologies(deps.pool, owned.flow, before, deps.patterns)
  await appendToFlow(owned, [...before, ...measured, last], {
    status: ended.status,
    error,
    ...('value' in ended ? { output: ended.value } : {}),
    progress,
    ended: true,
    ...condition,
  })
  logEnd(deps.log, owned.flow, ended.status)
}

/**
 * Writes a line about a flow run that failed or ran out of time, after the commit. Operators look into such runs. The
 * error is in the flow run alone: it may quote a model or a user, and log lines hold no contents.
 */
export function logEnd(
  log: Log,
  { id, project_id, flow_id, root }: Pick<ClaimedFlow, 'id' | 'project_id' | 'flow_id' | 'root'>,
  status: FlowEnd['status'],
): void {
  if (status !== 'failed' && status !== 'timed_out') return
  const fields = { flow_run_id: id, project_id, ...(flow_id === null ? {} : { flow_id }), pattern: root.type }
  log.warn(fields, status === 'failed' ? 'a flow run failed' : 'a flow run timed out')
}

function skippedEvents({ state, flow, deps }: OwnedFlow): FlowEvent[] {
  const known = new Set([...state.begun.keys()].map((name) => name.slice(name.indexOf(' ') + 1)))
  const ids = new Set(unbegun(state).map((leaf) => leaf.id))
  for (const { id } of createPlaces(flow.root, deps.patterns).planned()) if (!known.has(id)) ids.add(id)
  for (const id of state.toldSkipped) ids.delete(id)
  return [...ids].map((id): FlowEvent => ({ kind: 'task.skipped', data: { task_id: id } }))
}

/** The error of the flow run. If a leaf has failed, the error names it. */
function errorOf({ failures, counts }: FlowState, ended: FlowEnd): string | null {
  if (ended.status === 'timed_out') return 'The time of the flow was up.'
  const problems = 'problems' in ended ? ended.problems : undefined
  if (problems) return problems.join(' ')
  const named = failures.map(({ name, error }) => `${name}: ${error}`)
  if (ended.status === 'partial') {
    const rest = counts.failed > named.length ? ' …' : ''
    return named.length === 0 ? null : `${counts.failed} failed. ${named.join(' ')}${rest}`
  }
  const known = failures.findIndex(({ error }) => ended.error === error)
  return known === -1 ? ended.error : (named[known] ?? ended.error)
}
