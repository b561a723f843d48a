// Leaves that a pattern wants to hear of when they are slow.
import type { FlowEvent } from '../kernel/flow-run.ts'
import type { Session } from './flow-session.ts'
import { nameOf, slow } from './flow-standing.ts'

/** When the leaves that are watched will be slow. */
function watchesOf({ standing }: Session): { taskId: string; inMs: number }[] {
  return [...standing.machine.watched()].flatMap(([taskId, ms]) => {
    const task = standing.running.get(taskId)
    const begunAtMs = task && standing.begun.get(nameOf(task))
    return begunAtMs === undefined ? [] : [{ taskId, inMs: Math.max(0, begunAtMs + ms - Date.now()) }]
  })
}

export function setWatches(session: Session): void {
  for (const { taskId, inMs } of watchesOf(session)) {
    const dueAtMs = Date.now() + inMs
    // One timer is enough unless it must ring earlier; one that rings early is set anew.
    if ((session.watching.get(taskId) ?? Number.POSITIVE_INFINITY) <= dueAtMs + 1) continue
    session.watching.set(taskId, dueAtMs)
    session.after(inMs, { type: 'watch', taskId })
  }
}

export const nextWatchMs = (session: Session): number => Math.min(...watchesOf(session).map(({ inMs }) => inMs))

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
