// Events that happen at a time of their own: leaves that are slow by then, parts whose time is up, leaves that are
// tried again.
import type { FlowEvent } from '../kernel/flow-run.ts'
import type { Session } from './flow-session.ts'
import { nameOf, noteTimes, slow } from './flow-standing.ts'

/** The watched leaves that are under way, each with the time until it counts as slow. */
function watchesOf({ standing }: Session): { taskId: string; inMs: number }[] {
  return [...standing.machine.watched()].flatMap(([taskId, ms]) => {
    const task = standing.running.get(taskId)
    const begunAtMs = task && standing.begun.get(nameOf(task))
    return begunAtMs === undefined ? [] : [{ taskId, inMs: Math.max(0, begunAtMs + ms - Date.now()) }]
  })
}

export function setWatches(session: Session): void {
  if (session.standing.machine.watched().size === 0) return
  for (const { taskId, inMs } of watchesOf(session)) {
    const dueAtMs = Date.now() + inMs
    // One timer is enough unless it must ring earlier; a timer that rings early is set anew.
    if ((session.watching.get(taskId) ?? Number.POSITIVE_INFINITY) <= dueAtMs + 1) continue
    session.watching.set(taskId, dueAtMs)
    session.after(inMs, { type: 'watch', taskId })
  }
}

/** One timer for each part that has a time of its own. */
export function setDeadlines({ standing, timed, after }: Session): void {
  noteTimes(standing, [], Date.now())
  for (const [node, atMs] of standing.deadlines) {
    if (!standing.machine.isTimed(node)) standing.deadlines.delete(node)
    else if (!timed.has(node)) {
      timed.add(node)
      after(Math.max(0, atMs - Date.now()), { type: 'expired', node })
    }
  }
}

/** The time until the first timeout, retry or watch. */
export function nextInMs(session: Session): number {
  const { deadlines, delayed, dueAt } = session.standing
  const dues = [...delayed.values()].map((task) => dueAt.get(nameOf(task)) ?? 0)
  const firstAtMs = Math.min(...deadlines.values(), ...dues)
  return Math.min(firstAtMs - Date.now(), ...watchesOf(session).map(({ inMs }) => inMs))
}

export function checkWatched(session: Session, events: FlowEvent[], taskId: string): void {
  const { standing } = session
  session.watching.delete(taskId)
  const task = standing.running.get(taskId)
  const isDue = watchesOf(session).some((watch) => watch.taskId === taskId && watch.inMs === 0)
  if (!task || !isDue) return
  const runningFor = Date.now() - (standing.begun.get(nameOf(task)) ?? Date.now())
  events.push({ kind: 'task.slow', data: { task_id: taskId, running_for: runningFor } })
  const next = slow(standing, taskId)
  standing.fresh.push(...next)
}
