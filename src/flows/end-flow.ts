// The end of a flow run: its last events, among them those of the leaves that never began.
import type { FlowEvent } from '../kernel/flow-run.ts'
import { isMore, jsonSize } from '../kernel/json-size.ts'
import type { FlowChange } from './flow-journal.ts'
import { append, FlowLost, type Session } from './flow-session.ts'
import { type FlowStanding, progressOf, unbegun } from './flow-standing.ts'
import { createPlaces } from './task-places.ts'
import { measuredTopologies } from './topology.ts'

export type End =
  | { status: 'completed' | 'partial'; value: unknown; error: null; problems?: readonly string[] }
  | { status: 'failed' | 'cancelled' | 'timed_out'; error: string | null }

/** The largest output of a flow: it is written as one value. */
const MOST_OUTPUT = { bytes: 64 * 1_048_576, nodes: 2_000_000 }

function withinRoom(ended: End): End {
  if (!('value' in ended)) return ended
  const size = jsonSize(ended.value, MOST_OUTPUT)
  if (!isMore(size, MOST_OUTPUT)) return ended
  const most = size.bytes > MOST_OUTPUT.bytes ? `${MOST_OUTPUT.bytes} bytes (64 MiB)` : `${MOST_OUTPUT.nodes} values`
  return { status: 'failed', error: `The output of the flow takes more than ${most}.` }
}

/** A cancel that was asked for before this end is written wins: the flow run ends as cancelled. */
export async function end(session: Session, events: readonly FlowEvent[], given: End): Promise<void> {
  const ended = withinRoom(given)
  const mayBeRefused = ended.status !== 'cancelled'
  try {
    await writeEnd(session, events, ended, mayBeRefused ? { unless_cancelled: true } : {})
  } catch (error) {
    if (!mayBeRefused || !(error instanceof FlowLost) || !(await isCancelled(session))) throw error
    await end(session, events, { status: 'cancelled', error: null })
  }
}

async function isCancelled({ deps, flow }: Session): Promise<boolean> {
  const { rowCount } = await deps.pool.query(
    'select from flow_runs where id = $1 and fence = $2 and cancel_requested_at is not null',
    [flow.id, flow.fence],
  )
  return rowCount === 1
}

async function writeEnd(
  session: Session,
  events: readonly FlowEvent[],
  ended: End,
  condition: Pick<FlowChange, 'unless_cancelled'>,
): Promise<void> {
  const { standing } = session
  const isDone = ended.status === 'completed' || ended.status === 'partial'
  const progress = progressOf(standing, true)
  const skipped = progress.skipped === 0 ? [] : skippedEvents(session)
  const error = errorOf(standing, ended)
  const last: FlowEvent = isDone
    ? { kind: `flow.${ended.status}` as 'flow.completed', data: { output: 'value' in ended ? ended.value : null } } // one of two
    : { kind: `flow.${ended.status}` as 'flow.failed', data: { error } }
  const told = [...events, ...skipped]
  const measured = await measuredTopologies(session.deps.pool, session.flow, told)
  await append(session, [...told, ...measured, last], {
    status: ended.status,
    error,
    ...('value' in ended ? { output: ended.value } : {}),
    progress,
    ended: true,
    ...condition,
  })
}

/** Leaves that wait, and leaves of the tree that nothing led to. */
function skippedEvents({ standing, flow }: Session): FlowEvent[] {
  const known = new Set([...standing.begun.keys()].map((name) => name.slice(name.indexOf(' ') + 1)))
  const ids = new Set(unbegun(standing).map((task) => task.id))
  for (const { id } of createPlaces(flow.root).planned()) if (!known.has(id)) ids.add(id)
  for (const id of standing.toldSkipped) ids.delete(id)
  return [...ids].map((id): FlowEvent => ({ kind: 'task.skipped', data: { task_id: id } }))
}

/** If a leaf has failed, the error says which. */
function errorOf({ failures, counts }: FlowStanding, ended: End): string | null {
  if (ended.status === 'timed_out') return 'The time of the flow was up.'
  const problems = 'problems' in ended ? ended.problems : undefined
  if (problems) return problems.join(' ') || 'The queen did not accept the result.'
  const named = failures.map(({ name, error }) => `${name}: ${error}`)
  if (ended.status === 'partial') {
    const rest = counts.failed > named.length ? ' …' : ''
    return named.length === 0 ? null : `${counts.failed} failed. ${named.join(' ')}${rest}`
  }
  const known = failures.findIndex(({ error }) => ended.error === error)
  return known === -1 ? ended.error : (named[known] ?? ended.error)
}
