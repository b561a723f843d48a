import type { CheckNames } from '../agents/agents.ts'
import type { Db } from '../db/pool.ts'
import type { AgentDefinition } from '../kernel/agent.ts'
import { providerExists } from '../models/providers.ts'
import type { ToolRegistry } from '../tools/registry.ts'
import { nextTick } from '../triggers/cron.ts'
import { cronProblem } from '../triggers/cron-fields.ts'
import { databaseTime } from '../triggers/schedules.ts'

/** Every provider, tool and time zone that an agent names must exist when the agent is written. */
export function createCheckNames(registry: Pick<ToolRegistry, 'check'>): CheckNames {
  return async (db, projectId, definition) => {
    const timing = await timingProblem(db, definition)
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

async function timingProblem(db: Db, { cron_schedule, timezone }: AgentDefinition): Promise<string | null> {
  const problem = cron_schedule === null ? null : cronProblem(cron_schedule)
  if (problem) return problem
  if (!isTimezone(timezone)) return `timezone: there is no time zone called ${timezone}.`
  if (cron_schedule === null || nextTick(cron_schedule, timezone, await databaseTime(db)) !== null) return null
  return `cron_schedule: nothing is due in the next 8 years by "${cron_schedule}".`
}

function isTimezone(name: string): boolean {
  // Intl takes offsets such as +02:00 too; an offset is no time zone.
  if (/^[+-]/.test(name)) return false
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}
