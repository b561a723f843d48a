import type { CheckNames } from '../agents/agents.ts'
import { findFlow, flowNames } from '../flows/definition/find-flow.ts'
import { didYouMean } from '../kernel/nearest.ts'
import { unknownProvider } from '../models/providers.ts'
import { seniorTools } from '../org/senior-tools.ts'
import { approvalProblem } from '../tools/approval-problem.ts'
import type { ToolRegistry } from '../tools/registry.ts'
import { timingProblem } from '../triggers/timing.ts'

/** Every provider, tool and time zone that an agent names must exist when the agent is written. */
export function createCheckNames(registry: Pick<ToolRegistry, 'check'>): CheckNames {
  return async (db, projectId, definition) => {
    const timing = await timingProblem(db, definition)
    if (timing) return timing.problem
    const provider = definition.model?.provider
    const unknownModel = provider === undefined ? null : await unknownProvider(db, provider)
    if (unknownModel !== null) return `model.provider: ${unknownModel}`
    if (definition.flow !== null && !(await findFlow(db, projectId, definition.flow, { isHeld: true }))) {
      const guess = didYouMean(definition.flow, await flowNames(db, projectId))
      return `flow: there is no flow and no template called "${definition.flow}".${guess}`
    }
    const names = [...definition.tools, ...definition.steps.flatMap((step) => step.tools ?? [])]
    const unknown = await registry.check(db, projectId, names)
    if (unknown !== null) return `tools: ${unknown}`
    const offered = [
      ...seniorTools.map(({ name }) => name),
      ...(definition.flow_type === 'loop' ? ['finish_loop'] : []),
    ]
    const given = definition.flow_type === 'flow' ? null : [...names, ...offered]
    return approvalProblem(registry, db, projectId, { given, approved: definition.require_approval })
  }
}
