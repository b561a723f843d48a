// The places of the inbox: nothing moves under the pointer, and nothing that was decided vanishes.
import type { Task } from '../../../../src/kernel/task.ts'

const WEIGHTS: Record<Task['priority'], number> = { urgent: 0, high: 1, medium: 2, low: 3 }
const MOST_KEPT = 1_000

/** The first look: what is urgent comes first, then what is newest. */
export const inOrder = (tasks: readonly Task[]): Task[] =>
  tasks.toSorted(
    (a, b) => WEIGHTS[a.priority] - WEIGHTS[b.priority] || Date.parse(b.created_at) - Date.parse(a.created_at),
  )

/** Known tasks keep their places, also those that wait no more; new ones come behind them. */
export function keepPlaces(shown: readonly Task[], waiting: readonly Task[]): Task[] {
  const news = new Map(waiting.map((task) => [task.id, task]))
  const kept = shown.map((task) => news.get(task.id) ?? task)
  const known = new Set(shown.map(({ id }) => id))
  return [...kept, ...inOrder(waiting.filter(({ id }) => !known.has(id)))].slice(-MOST_KEPT)
}

/** The id this many places further, or the nearest end; from no place it is the first. */
export function idFrom(ids: readonly string[], current: string | null, by: 1 | -1): string | null {
  const at = current === null ? -1 : ids.indexOf(current)
  if (at === -1) return ids[0] ?? null
  return ids[Math.max(0, Math.min(ids.length - 1, at + by))] ?? null
}

/** The next open id after this one, else the one before it, else none. */
export function nextOpen(ids: readonly string[], current: string, isOpen: (id: string) => boolean): string | null {
  const at = ids.indexOf(current)
  return ids.slice(at + 1).find(isOpen) ?? ids.slice(0, Math.max(0, at)).findLast(isOpen) ?? null
}
