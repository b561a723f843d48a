import { registerHooks } from 'node:module'

const OURS: Readonly<Record<string, string>> = {
  'muster-agents': new URL('../kernel/app.ts', import.meta.url).href,
}
/** The packages that an app module may use without installing them: schemas must be of the zod that checks them. */
const SHARED = new Set(['zod'])

let isOffered = false

/** An app module may lie anywhere and still import `muster-agents` and `zod`. Its own installed packages come first. */
export function offerImports(): void {
  if (isOffered) return
  isOffered = true
  registerHooks({
    resolve(specifier, context, nextResolve) {
      const own = OURS[specifier]
      if (own) return { url: own, shortCircuit: true }
      try {
        return nextResolve(specifier, context)
      } catch (error) {
        if (!SHARED.has(specifier)) throw error
        return nextResolve(specifier, { ...context, parentURL: import.meta.url })
      }
    },
  })
}
