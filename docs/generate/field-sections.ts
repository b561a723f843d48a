import { z } from 'zod'
import {
  agentDefaults,
  agentDefinition,
  agentStep,
  capabilitiesField,
  modelChoice,
  reactionConfig,
} from '../../src/kernel/agent.ts'
import { defaultSettings, settingsSchema } from '../../src/kernel/project.ts'
import { cell } from './markdown.ts'

export async function settingSections(): Promise<Record<string, string>> {
  return { settings: fieldTable(settingsSchema, defaultSettings) }
}

export async function agentSections(): Promise<Record<string, string>> {
  return {
    fields: fieldTable(agentDefinition, agentDefaults),
    model: fieldTable(modelChoice),
    steps: fieldTable(agentStep),
    capabilities: fieldTable(capabilitiesField),
  }
}

export const reactionSections = (): Record<string, string> => ({ reaction_config: fieldTable(reactionConfig) })

/** Throws if a field has no description. */
function fieldTable(schema: z.ZodObject, defaults: Readonly<Record<string, unknown>> = {}): string {
  const { properties = {}, required = [] } = z.toJSONSchema(schema, { io: 'input' })
  const rows = Object.entries(properties).map(([name, field]) => {
    const { description, default: own } = typeof field === 'object' ? field : {}
    if (description === undefined) throw new Error(`the field ${name} has no description`)
    const fallback = name in defaults ? defaults[name] : own
    const isRequired = fallback === undefined && required.includes(name)
    const shown = fallback === undefined ? '' : `\`${JSON.stringify(fallback)}\``
    return `| \`${name}\` | ${isRequired ? 'required' : cell(shown)} | ${cell(description)} |`
  })
  return ['| field | default | meaning |', '|---|---|---|', ...rows].join('\n')
}
