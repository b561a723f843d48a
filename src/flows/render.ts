// Templates in a flow's values: `{{input.name}}`. One pass, no code: what is put in is never looked at again, and a path
// leads only through properties that the value itself has.

/** What `{{…}}` may name. */
export interface Scope {
  input: unknown
  previous: unknown
  item?: unknown
  results: Readonly<Record<string, unknown>>
}

const TEMPLATE = /\{\{\s*(input|previous|item|results)((?:\.[^{}.\s]+)*)\s*\}\}/g
const ONE_TEMPLATE = /^\{\{\s*(input|previous|item|results)((?:\.[^{}.\s]+)*)\s*\}\}$/

/** The whole text is one template, whose value keeps its type. */
export const isTemplate = (text: string): boolean => ONE_TEMPLATE.test(text)

/** The value with every template in it filled in, however deep it stands. Property names are left as they are. */
export function render(value: unknown, scope: Scope): unknown {
  if (typeof value === 'string') return renderText(value, scope)
  if (Array.isArray(value)) return value.map((each) => render(each, scope))
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, render(each, scope)]))
}

function renderText(text: string, scope: Scope): unknown {
  const one = ONE_TEMPLATE.exec(text)
  if (one) {
    const value = valueAt(scope, one[1], one[2])
    // An unknown path is an empty text.
    return value === undefined ? '' : value
  }
  return text.replaceAll(TEMPLATE, (_, root: string, path: string) => asText(valueAt(scope, root, path)))
}

function valueAt(scope: Scope, root = '', path = ''): unknown {
  let value: unknown = scope[root as keyof Scope] // the pattern lets only these through
  for (const part of path.split('.').slice(1)) {
    if (value === null || typeof value !== 'object' || !Object.hasOwn(value, part)) return undefined
    value = (value as Record<string, unknown>)[part] // has it, asked above
  }
  return value
}

function asText(value: unknown): string {
  if (value === undefined || value === null) return ''
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
