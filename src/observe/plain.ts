const deepest = 10
const mostValues = 5_000

/**
 * A copy as JSON data: errors with causes, maps and headers as fields, cycles cut. Never throws, and stays small for a
 * socket or a request, which lead to half of the heap.
 */
export function toPlain(value: unknown): unknown {
  try {
    return copy(value, [], { left: mostValues })
  } catch {
    return '[unreadable]'
  }
}

type Budget = { left: number }

function copy(value: unknown, parents: readonly object[], budget: Budget): unknown {
  if (typeof value === 'bigint') return String(value)
  if (typeof value === 'function' || typeof value === 'symbol') return undefined
  if (typeof value !== 'object' || value === null) return value
  if (parents.includes(value)) return '[circular]'
  budget.left -= 1
  if (parents.length >= deepest || budget.left < 0) return '[more]'
  const path = [...parents, value]
  if (Array.isArray(value)) return value.map((item) => copy(item, path, budget))
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`
  if (value instanceof Error) return fields(errorEntries(value), path, budget)
  if (value instanceof Set) return [...value].map((item) => copy(item, path, budget))
  if (value instanceof Map || value instanceof Headers) return fields([...value], path, budget)
  if ('toJSON' in value && typeof value.toJSON === 'function') return copy(value.toJSON(), path, budget)
  return fields(Object.entries(value), path, budget)
}

function fields(entries: Iterable<readonly [unknown, unknown]>, path: readonly object[], budget: Budget): object {
  return Object.fromEntries([...entries].map(([name, value]) => [String(name), copy(value, path, budget)]))
}

function errorEntries(error: Error): [string, unknown][] {
  const described = new Set(['type', 'message', 'stack', 'cause', 'errors'])
  const entries: [string, unknown][] = [
    ['type', error.name],
    ['message', error.message],
    ['stack', error.stack],
    ...Object.entries(error).filter(([name]) => !described.has(name)),
  ]
  if (error.cause !== undefined) entries.push(['cause', error.cause])
  if (error instanceof AggregateError) entries.push(['errors', error.errors])
  return entries
}
