// An input to begin with: the paths that the templates of a flow name, with empty texts.

const UNSAFE = new Set(['__proto__', 'constructor', 'prototype'])

/** Null if no template names a part of the input. */
export function inputSketch(root: unknown): Record<string, unknown> | null {
  const sketch: Record<string, unknown> = {}
  for (const [, path = ''] of JSON.stringify(root ?? null).matchAll(/\{\{\s*input\.([\w.-]+)\??\s*\}\}/g)) {
    const names = path.split('.')
    if (names.some((name) => UNSAFE.has(name) || name === '')) continue
    place(sketch, names)
  }
  return Object.keys(sketch).length === 0 ? null : sketch
}

function place(into: Record<string, unknown>, [name = '', ...rest]: string[]): void {
  const found = into[name]
  if (rest.length === 0 || /^\d+$/.test(rest[0] ?? '')) {
    into[name] ??= rest.length === 0 ? '' : []
    return
  }
  const inner = typeof found === 'object' && found !== null ? (found as Record<string, unknown>) : {} // made below
  into[name] = inner
  if (!Array.isArray(inner)) place(inner, rest)
}
