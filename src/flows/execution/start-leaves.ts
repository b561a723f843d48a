// The beginning of the leaves of a flow run. A leaf begins after the journal says so; `beginEarly` is the one exception.
import type { FlowEvent } from '../../kernel/flow-run.ts'
import type { FlowLeaf } from '../machine/flow-leaf.ts'
import { beginAll, isFunctionLeaf, releaseSlot } from './begin-leaf.ts'
import { type LeafStart, noteBegun } from './note-begun.ts'
import type { OwnedFlow } from './owned-flow.ts'
import { takeUntold } from './settle-leaf.ts'
import { attemptKey } from './state.ts'
import { takeOverFinished } from './take-over-leaves.ts'
import { writeEvents } from './write-events.ts'

/**
 * Starts as many of the waiting leaves as there is room for, and writes the events so far with those of the starts. True:
 * somebody has asked for the end.
 */
export async function startLeaves(
  owned: OwnedFlow,
  events: FlowEvent[],
  { mayStart, mayBeginEarly }: { mayStart: boolean; mayBeginEarly: boolean },
): Promise<boolean> {
  const { state, mailbox } = owned
  if (mayStart) takeOverFinished(owned, events)
  const starts = mayStart ? takeStartable(owned) : []
  // The switch is journalled before the leaves that are started under it.
  for (const data of state.pools.switched()) events.push({ kind: 'topology.switched', data })
  for (const start of starts) if (!state.begun.has(attemptKey(start.leaf))) events.push(noteBegun(state, start))
  events.push(...takeUntold(state))
  for (const data of state.pools.rebalance()) events.push({ kind: 'topology.switched', data })
  const haveBegun = mayBeginEarly && (await beginEarly(owned, starts))
  // A leaf that is done at once is journalled together with its beginning.
  if (haveBegun && !mailbox.isEmpty()) return false
  const isCancelled = await writeEvents(owned, events.splice(0))
  if (haveBegun) return isCancelled
  if (isCancelled) takeBackStarts(owned, starts)
  else await beginAll(owned, starts.map(leafOf))
  return isCancelled
}

const leafOf = ({ leaf }: LeafStart): FlowLeaf => leaf

/**
 * Begins the functions that this process calls itself before the journal says so. That is safe for a new flow that this
 * process has just accepted, because nobody has asked for its end. Answers whether they have begun.
 */
async function beginEarly(owned: OwnedFlow, starts: readonly LeafStart[]): Promise<boolean> {
  if (starts.length === 0 || !starts.every(({ leaf }) => owned.local.has(leaf.id))) return false
  await beginAll(owned, starts.map(leafOf))
  await new Promise(setImmediate)
  return true
}

/** The end was asked for before these leaves began: they wait again. */
function takeBackStarts(owned: OwnedFlow, starts: readonly LeafStart[]): void {
  const { state } = owned
  for (const { leaf } of starts) {
    state.running.delete(leaf.id)
    releaseSlot(owned, leaf.id)
  }
  state.ready.unshift(...starts.map(leafOf))
}

/** Takes as many of the waiting leaves as there is room for. Leaves that back off come later. */
function takeStartable(owned: OwnedFlow): LeafStart[] {
  const { deps, flow, state, after, mailbox } = owned
  for (const leaf of state.fresh.splice(0)) {
    if (leaf.afterMs > 0) {
      state.delayed.set(leaf.id, leaf)
      const dueAtMs = state.dueAt.get(attemptKey(leaf)) ?? Date.now() + leaf.afterMs
      state.dueAt.set(attemptKey(leaf), dueAtMs)
      after(Math.max(0, dueAtMs - Date.now()), { type: 'due', leaf })
    } else if (leaf.pool) state.pools.add(leaf.pool, leaf)
    else state.ready.push(leaf)
  }
  const { slots } = deps
  const room = Math.max(0, (flow.workers ?? deps.leafLimit) - state.running.size)
  // If no other process lives, functions wait for room in this one. Else functions that find no room are left to
  // others.
  const { project_id: projectId } = flow
  const hasRoomHere = (): boolean => deps.hasOthers() || slots.hasRoomFor(projectId)
  const starts: LeafStart[] = []
  const startLeaf = (start: LeafStart): void => {
    const { leaf } = start
    starts.push(start)
    state.running.set(leaf.id, leaf)
    if (!isFunctionLeaf(leaf) || !deps.functions.has(leaf.node.function) || !slots.hasRoomFor(projectId)) return
    slots.take(projectId)
    owned.local.add(leaf.id)
  }
  let count = 0
  for (const leaf of state.ready) {
    if (count >= room || (isFunctionLeaf(leaf) && !hasRoomHere())) break
    startLeaf({ leaf, worker: null, handover: null })
    count++
  }
  state.ready.splice(0, count)
  for (const start of state.pools.take(Math.min(room - count, deps.hasOthers() ? room : slots.roomFor(projectId))))
    startLeaf(start)
  if (state.ready.length + state.pools.waitingCount() > 0 && !slots.hasRoomFor(projectId)) {
    slots.wait(mailbox, projectId, () => mailbox.put({ type: 'room' }))
  }
  slots.passOn()
  return starts
}
