import type { CheckNames } from '../agents/agents.ts'
import type { AgentDefinition } from '../kernel/agent.ts'
import { providerExists } from '../models/providers.ts'
import type { ToolRegistry } from '../tools/registry.ts'

/** Providers, tools, time zones: whatever an agent names must exist when it is written. */
export function createCheckNames(registry: Pick<ToolRegistry, 'check'>): CheckNames {
  return async (db, projectId, definition) => {
    const timing = timingProblem(definition)
    if (timing) return timing
    const provider = definition.model?.provider
    if (provider !== undefined && !(await providerExists(db, provider))) {
      return `model.provider: there is no provider called ${provider}.`
    }
    const names = [...definition.tools, ...definition.steps.flatMap((step) => step.tools ?? [])]
    const unknown = await registry.check(db, projectId, names)
    return unknown === null ? null : `tools: ${unknown}`
  }
}

function timingProblem({ cron_schedule, timezone }: AgentDefinition): string | null {
  if (cron_schedule !== null && !isCron(cron_schedule)) {
    return 'cron_schedule must have five fields of digits and "* , - /", such as "0 9 * * 1-5".'
  }
  return isTimezone(timezone) ? null : `timezone: there is no time zone called ${timezone}.`
}

const isCron = (text: string): boolean => {
  const fields = text.split(' ')
  return fields.length === 5 && fields.every((field) => /^[\d*,/-]+$/.test(field))
}

function isTimezone(name: string): boolean {
  // Intl takes offsets too; those are no zones with a clock of their own.
  if (/^[+-]/.test(name)) return false
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}
