import type { Loop } from '../../kernel/flow.ts'
import { endOf, failed, leafOf, type Pattern } from '../pattern.ts'

/** Runs the body again and again, each time with the last result, until `until` or the limit ends the loop. */
export const loop: Pattern<Loop> = ({ node, previous, children, open }) => {
  if (open > 0) return 'wait'
  const iteration = [...children.keys()].filter((key) => !key.startsWith('until')).length
  const body = children.get(String(iteration))
  if (iteration === 0) return { start: [{ key: '1', node: node.body, previous }] }
  if (!body || body.status === 'failed') return { end: failed(body?.error ?? 'The loop did not run.') }
  const again = { start: [{ key: String(iteration + 1), node: node.body, previous: body.value }] }
  const isLast = iteration >= node.max_iterations
  if (node.until === undefined) return isLast ? { end: endOf(body.value, children.values()) } : again
  const verdict = children.get(`until ${iteration}`)
  if (verdict === undefined) {
    const item = { output: body.value, iteration }
    return { start: [{ key: `until ${iteration}`, node: leafOf(node.until), previous: body.value, item }] }
  }
  if (verdict?.status === 'failed') return { end: failed(verdict.error) }
  return isLast || isTrue(verdict?.value) ? { end: endOf(body.value, children.values()) } : again
}

/** An agent answers in words. */
const isTrue = (value: unknown): boolean =>
  typeof value === 'string' ? /^\s*(true|yes|done)\b/i.test(value) : Boolean(value)
