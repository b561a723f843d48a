import type { Adaptive } from '../../kernel/flow.ts'
import { completed, failed, type Pattern, partial } from '../pattern.ts'

/** Starts all tasks at once; the pool deals them to the workers. The value lists the results in the order of tasks. */
export const adaptive: Pattern<Adaptive> = ({ node, previous, children, open }) => {
  if (children.size === 0) {
    return { start: node.tasks.map((task, place) => ({ key: String(place), node: task, previous })) }
  }
  if (open > 0) return 'wait'
  const outcomes = [...children.values()].filter((outcome) => outcome !== null)
  const failures = outcomes.filter((outcome) => outcome.status === 'failed')
  const values = outcomes.map((outcome) => (outcome.status === 'failed' ? null : outcome.value))
  if (failures.length === 0) return { end: completed(values) }
  if (failures.length < outcomes.length) return { end: partial(values) }
  return { end: failed(`All ${outcomes.length} tasks failed. The first: ${failures[0]?.error}`) }
}
