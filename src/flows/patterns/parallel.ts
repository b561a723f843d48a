import type { Parallel } from '../../kernel/flow.ts'
import { failed, flattened, leafOf, type Move, type Outcome, type Pattern, partial, type Standing } from '../pattern.ts'

const AGGREGATE = 'aggregate'

/** Starts all branches at once. A branch that fails leaves the others alone; the whole fails only where all fail. */
export const parallel: Pattern<Parallel> = (standing) => {
  const { node, previous, children, open } = standing
  if (children.size === 0) {
    return { start: node.branches.map((branch, place) => ({ key: String(place), node: branch, previous })) }
  }
  if (open > 0) return 'wait'
  return children.has(AGGREGATE) ? endOfAggregate(standing) : aggregate(standing)
}

function aggregate({ node, previous, children }: Standing<Parallel>): Move {
  const branches = [...children.values()].filter((branch) => branch !== null)
  const failures = branches.filter((branch) => branch.status === 'failed')
  const isWhole = branches.every((branch) => branch.status === 'completed')
  if (failures.length === branches.length) {
    return { end: failed(`All ${branches.length} branches failed. The first: ${failures[0]?.error}`) }
  }
  const values = branches.map((branch) => (branch.status === 'failed' ? null : branch.value))
  const finished = (value: unknown): Move => ({
    end: isWhole ? { status: 'completed', value, error: null } : partial(value),
  })
  switch (node.aggregate) {
    case undefined:
    case 'array':
      return finished(values)
    case 'concat':
      return finished(flattened(values.filter((value) => value !== null)))
    case 'merge':
      return finished(merged(values))
    default:
      return { start: [{ key: AGGREGATE, node: leafOf(node.aggregate), previous, item: values }] }
  }
}

function endOfAggregate({ children }: Standing<Parallel>): Move {
  const outcome = children.get(AGGREGATE)
  if (!outcome || outcome.status === 'failed') return { end: outcome ?? failed('The results were not put together.') }
  const isWhole = [...children.values()].every((child: Outcome | null) => child?.status === 'completed')
  return { end: isWhole ? outcome : partial(outcome.value) }
}

/** Later branches win. A value that is no object has nothing to merge. */
function merged(values: readonly unknown[]): Record<string, unknown> {
  const objects = values.filter((value) => value !== null && typeof value === 'object' && !Array.isArray(value))
  const all: Record<string, unknown> = {}
  for (const each of objects) Object.assign(all, each)
  return all
}
