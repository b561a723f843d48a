import type { AgentDefinition, Capabilities } from './agent.ts'

export type ExecutionMode = 'execute' | 'suggest' | 'hybrid'

/** The most that a run may do. */
export interface Rights {
  capabilities: Capabilities
  mode: ExecutionMode
  /** Names and patterns of the tools whose calls wait for a person. */
  require_approval: readonly string[]
}

export type AgentRights = Pick<AgentDefinition, 'capabilities' | 'execution_mode'> & Pick<Rights, 'require_approval'>

/** A sub-run has its own agent's rights within its parent's, never more. */
export function rightsWithin(bounds: Partial<Rights>, agent: AgentRights): Rights {
  return {
    capabilities: bounds.capabilities ? within(bounds.capabilities, agent.capabilities) : agent.capabilities,
    mode: stricter(bounds.mode ?? 'execute', agent.execution_mode),
    require_approval: [...new Set([...(bounds.require_approval ?? []), ...agent.require_approval])],
  }
}

/** The rights of a run that continues another never exceed those of either. */
export function rightsOfBoth(bounds: Partial<Rights>, stored: Partial<Rights>): Partial<Rights> {
  const { capabilities, mode = 'execute', require_approval = [] } = stored
  if (capabilities) return rightsWithin(bounds, { capabilities, execution_mode: mode, require_approval })
  const { capabilities: outer } = bounds
  return {
    ...(outer ? { capabilities: outer } : {}),
    mode: stricter(bounds.mode ?? 'execute', mode),
    require_approval: [...new Set([...(bounds.require_approval ?? []), ...require_approval])],
  }
}

function within(outer: Capabilities, own: Capabilities): Capabilities {
  const types = intersect(outer.allowedObjectTypes, own.allowedObjectTypes)
  return {
    canCreateObjects: outer.canCreateObjects && own.canCreateObjects,
    canUpdateObjects: outer.canUpdateObjects && own.canUpdateObjects,
    canDeleteObjects: outer.canDeleteObjects && own.canDeleteObjects,
    ...(types ? { allowedObjectTypes: types } : {}),
  }
}

const STRICTEST_FIRST: readonly ExecutionMode[] = ['suggest', 'hybrid', 'execute']

const stricter = (a: ExecutionMode, b: ExecutionMode): ExecutionMode =>
  STRICTEST_FIRST.find((mode) => mode === a || mode === b) ?? 'suggest'

/** Tells whether a tool's name fits a name or a pattern (`mcp:<server>/*`). */
export const fitsTool = (pattern: string, name: string): boolean =>
  pattern === name || (pattern.endsWith('/*') && name.startsWith(pattern.slice(0, -1)))

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
