import { shownStatus, type TaskRow } from './flow-store.ts'

export interface PlannedTask {
  id: string
  title: string
  depends_on: string[]
}

/** The subtasks in a queen's answer. A text without a plan has none. */
export function readPlan(summary: string | null): PlannedTask[] {
  const json = /\{[\s\S]*\}/.exec(summary ?? '')?.[0]
  if (json === undefined) return []
  try {
    const { subtasks } = JSON.parse(json) as { subtasks?: unknown }
    if (!Array.isArray(subtasks)) return []
    return subtasks.flatMap((each: Partial<PlannedTask>) =>
      typeof each?.id === 'string'
        ? [
            {
              id: each.id,
              title: String(each.title ?? each.id),
              depends_on: Array.isArray(each.depends_on) ? each.depends_on.map(String) : [],
            },
          ]
        : [],
    )
  } catch {
    return []
  }
}

/** A subtask may be done by several workers; the worst of them tells how it stands. */
export function statusOfSubtask(tasks: readonly TaskRow[]): string {
  const all = new Set(tasks.map(shownStatus))
  return (
    (['blocked', 'running', 'failed', 'pending', 'completed', 'skipped'] as const).find((each) => all.has(each)) ??
    'pending'
  )
}
