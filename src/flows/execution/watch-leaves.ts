// The clocks of a flow run in its owner's hands: its timeout, the timeouts of its parts, and slow leaves.
import type { FlowEvent } from '../../kernel/flow-run.ts'
import type { ClaimedFlow } from './claim.ts'
import { readClocks } from './leaf-clocks.ts'
import type { FlowDeps, OwnedFlow } from './owned-flow.ts'
import { attemptKey, noteTimes, slow } from './state.ts'
import { readTime } from './token-waits.ts'

/** The watched leaves that are under way, each with the time until it counts as slow. */
function watchesOf({ state }: OwnedFlow): { leafId: string; inMs: number }[] {
  return [...state.machine.watched()].flatMap(([leafId, ms]) => {
    const leaf = state.running.get(leafId)
    if (!leaf) return []
    const begunAtMs = state.begun.get(attemptKey(leaf))
    if (begunAtMs === undefined) return []
    const waitedMs = state.waitedMs.get(attemptKey(leaf)) ?? 0
    return [{ leafId, inMs: Math.max(0, begunAtMs + waitedMs + ms - Date.now()) }]
  })
}

export function setWatches(owned: OwnedFlow): void {
  if (owned.state.machine.watched().size === 0) return
  for (const { leafId, inMs } of watchesOf(owned)) {
    const dueAtMs = Date.now() + inMs
    // One timer is enough unless it must ring earlier. A timer that rings early is set anew.
    if ((owned.watching.get(leafId) ?? Number.POSITIVE_INFINITY) <= dueAtMs + 1) continue
    owned.watching.set(leafId, dueAtMs)
    owned.after(inMs, { type: 'watch', leafId })
  }
}

/** The flow run may take this long, from its start. */
export function setEnd(owned: OwnedFlow, timeoutMs: number): void {
  owned.flow.timeout = timeoutMs
  owned.checkEndAtMs = owned.countsFromMs + timeoutMs
  // A timer that rings early is set anew when it rings.
  if (owned.checkEndAtMs < owned.timerAtMs) setEndTimer(owned)
}

export type Timed = Pick<ClaimedFlow, 'age' | 'still' | 'timeout' | 'project_id'>

/** True if the claimed flow run was under way for its timeout or longer. A halted flow run is not late. */
export const isLate = ({ isHalted }: Pick<FlowDeps, 'isHalted'>, flow: Timed): boolean =>
  flow.age - flow.still >= flow.timeout && !isHalted(flow.project_id)

/**
 * Sets the timer anew if it rang too early: somebody gave the flow run more time since, or the clock is a little off.
 * Returns true if it did.
 */
export function rearmIfEarly(owned: OwnedFlow): boolean {
  if (Date.now() >= owned.checkEndAtMs) return false
  setEndTimer(owned)
  return true
}

/** A flow run that waits for tokens or for people is looked at again after this time at the latest. */
const LOOK_EVERY_MS = 60_000

/** The time until the flow run times out. While all leaves wait for people, no time passes; an answer wakes the flow run. */
export function timeLeftMs({ flow, checkEndAtMs }: OwnedFlow): number {
  const leftMs = checkEndAtMs - Date.now()
  return flow.is_still ? Math.max(leftMs, LOOK_EVERY_MS) : leftMs
}

/** Lets the timer ring later if the project is halted: the flow run parks as soon as it can. Returns true if it is. */
export function postponeIfHalted(owned: OwnedFlow): boolean {
  if (!owned.deps.isHalted(owned.flow.project_id)) return false
  lookAgainLater(owned)
  return true
}

/** A flow run that this process holds and that stands still is looked at again after this time at the latest. */
const LOOK_WHILE_STILL_MS = 1_000

/**
 * Called when the time seems to be up by the clock of this process, which knows of no waits. The row knows them: lets
 * the timer ring later if all leaves wait or have waited, if the flow run waits for tokens with the task it is part of,
 * or if it was given more time. Returns true in all these cases.
 */
export async function postponeIfWaiting(owned: OwnedFlow): Promise<boolean> {
  const { deps, flow } = owned
  const time = await readTime(deps.pool, flow.id, flow.within?.payers ?? [])
  if (!time) return false
  if (time.waits_for_tokens) {
    lookAgainLater(owned)
    return true
  }
  owned.countsFromMs = Date.now() - time.age + time.still
  setEnd(owned, time.timeout)
  // The rest of its time passes when a leaf continues.
  if (time.is_still) owned.checkEndAtMs = Math.max(owned.checkEndAtMs, Date.now() + LOOK_WHILE_STILL_MS)
  return rearmIfEarly(owned)
}

function lookAgainLater(owned: OwnedFlow): void {
  owned.checkEndAtMs = Date.now() + LOOK_EVERY_MS
  setEndTimer(owned)
}

function setEndTimer(owned: OwnedFlow): void {
  owned.timerAtMs = owned.checkEndAtMs
  owned.after(Math.max(0, owned.checkEndAtMs - Date.now()), { type: 'stop', as: 'timed_out' })
}

export function setDeadlines({ state, timed, after }: OwnedFlow): void {
  noteTimes(state, [], Date.now())
  for (const [node, atMs] of state.deadlines) {
    if (!state.machine.isTimed(node)) state.deadlines.delete(node)
    else if (!timed.has(node)) {
      timed.add(node)
      after(Math.max(0, atMs - Date.now()), { type: 'expired', node })
    }
  }
}

/** The time until the first timeout, retry or watch. While all leaves wait, no part and no watched leaf is late. */
export function nextInMs(owned: OwnedFlow): number {
  const { deadlines, delayed, dueAt } = owned.state
  const dues = [...delayed.values()].map((leaf) => dueAt.get(attemptKey(leaf)) ?? 0)
  const clocks = [Math.min(...deadlines.values()) - Date.now(), ...watchesOf(owned).map(({ inMs }) => inMs)]
  const clocksInMs = owned.flow.is_still ? Math.max(Math.min(...clocks), LOOK_EVERY_MS) : Math.min(...clocks)
  return Math.min(Math.min(...dues) - Date.now(), clocksInMs)
}

/** Called when the time of a part seems to be up. False: leaves in it have waited, and it has more time. */
export async function isExpired(owned: OwnedFlow, node: string): Promise<boolean> {
  const { state } = owned
  const clocks = state.machine.isTimed(node) ? await readClocks(owned) : null
  const dueAtMs = clocks?.deadlines.get(node)
  if (dueAtMs === undefined || dueAtMs <= Date.now()) return true
  const lookAtMs = Math.max(dueAtMs, Date.now() + LOOK_WHILE_STILL_MS)
  state.deadlines.set(node, lookAtMs)
  owned.timed.delete(node)
  return false
}

export async function checkWatched(owned: OwnedFlow, events: FlowEvent[], leafId: string): Promise<void> {
  const { state } = owned
  owned.watching.delete(leafId)
  const isDue = (): boolean => watchesOf(owned).some((watch) => watch.leafId === leafId && watch.inMs === 0)
  const leaf = state.running.get(leafId)
  if (!leaf || !isDue()) return
  const key = attemptKey(leaf)
  const waitedMs = (await readClocks(owned))?.waitedMs.get(key) ?? 0
  const beforeMs = state.waitedMs.get(key) ?? 0
  // It has waited since the last look.
  if (waitedMs > beforeMs) state.waitedMs.set(key, Math.max(waitedMs, beforeMs + LOOK_WHILE_STILL_MS))
  if (!isDue()) return
  const runningFor = Date.now() - (state.begun.get(key) ?? Date.now()) - waitedMs
  events.push({ kind: 'task.slow', data: { task_id: leafId, running_for: Math.max(0, runningFor) } })
  const next = slow(state, leafId)
  state.fresh.push(...next)
}
