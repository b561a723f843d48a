import { registerHooks } from 'node:module'
import { fileURLToPath } from 'node:url'

/** This package itself, even if the app module has installed another copy: its exports are in package.json. */
const OURS = 'muster-agents'
/** The packages that an app module may use without installing them: schemas must be of the zod that checks them. */
const SHARED = new Set(['zod'])

let isOffered = false
let note: ((file: string) => void) | null = null

/** The author's own files that `load` imports. Modules that are loaded at the same time are among them. */
export async function notingImports<Result>(files: Set<string>, load: () => Promise<Result>): Promise<Result> {
  offerImports()
  note = (file) => void files.add(file)
  try {
    return await load()
  } finally {
    note = null
  }
}

/** An app module may lie anywhere and still import `muster-agents` and `zod`. Its own installed packages come first. */
function offerImports(): void {
  if (isOffered) return
  isOffered = true
  registerHooks({
    resolve(specifier, context, nextResolve) {
      const fromHere = { ...context, parentURL: import.meta.url }
      if (specifier === OURS) return nextResolve(specifier, fromHere)
      try {
        const resolved = nextResolve(specifier, context)
        if (note && resolved.url.startsWith('file:')) note(fileURLToPath(resolved.url))
        return resolved
      } catch (error) {
        if (!SHARED.has(specifier)) throw error
        return nextResolve(specifier, fromHere)
      }
    },
  })
}
