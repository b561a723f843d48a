import type { Capabilities } from './agent.ts'

export type ExecutionMode = 'execute' | 'suggest' | 'hybrid'

/** The most that a run may do. */
export interface Rights {
  capabilities: Capabilities
  mode: ExecutionMode
}

/** A sub-run has its own agent's rights within its parent's, never more; a sub-run of a suggesting run suggests too. */
export function rightsWithin(
  bounds: Partial<Rights>,
  agent: { capabilities: Capabilities; execution_mode: ExecutionMode },
): Rights {
  const { capabilities: outer, mode } = bounds
  const own = agent.capabilities
  if (!outer) return { capabilities: own, mode: mode === 'suggest' ? 'suggest' : agent.execution_mode }
  const types = intersect(outer.allowedObjectTypes, own.allowedObjectTypes)
  return {
    capabilities: {
      canCreateObjects: outer.canCreateObjects && own.canCreateObjects,
      canUpdateObjects: outer.canUpdateObjects && own.canUpdateObjects,
      canDeleteObjects: outer.canDeleteObjects && own.canDeleteObjects,
      ...(types ? { allowedObjectTypes: types } : {}),
    },
    mode: mode === 'suggest' ? 'suggest' : agent.execution_mode,
  }
}

const NEEDED = {
  create: 'canCreateObjects',
  // A new edge counts as a creation.
  relate: 'canCreateObjects',
  update: 'canUpdateObjects',
  delete: 'canDeleteObjects',
} as const

/** The reason why these capabilities do not allow the operation on objects of these types, or null. */
export function capabilityProblem(
  capabilities: Capabilities,
  op: keyof typeof NEEDED,
  types: readonly string[],
): string | null {
  const needed = NEEDED[op]
  if (!capabilities[needed]) return `This agent may not ${op} objects (${needed} is false).`
  const allowed = capabilities.allowedObjectTypes
  const foreign = types.find((type) => allowed !== undefined && !allowed.includes(type))
  return foreign === undefined ? null : `This agent may not change objects of the type "${foreign}".`
}

/** An absent list means all types. */
function intersect(a: readonly string[] | undefined, b: readonly string[] | undefined): string[] | undefined {
  if (!a || !b) return a || b ? [...(a ?? b ?? [])] : undefined
  return a.filter((type) => b.includes(type))
}
