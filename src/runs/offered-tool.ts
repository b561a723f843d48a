// A tool with an effect outside Muster, as an agent that suggests or chooses sees it: with "reasoning", and in hybrid mode
// "apply", beside its own arguments. The added arguments are taken out before the tool is called.
import { z } from 'zod'
import { isRecord } from '../kernel/is-record.ts'
import { defaultSettings } from '../kernel/project.ts'
import type { ExecutionMode } from '../kernel/rights.ts'
import type { CallTool, JsonSchema, ParsedArguments } from '../kernel/tool.ts'
import { zodArguments } from '../tools/arguments.ts'

const reasoning = z.string().min(1).max(20_000).regex(/\S/, 'must not be blank')
const apply = z
  .enum(['execute', 'suggest'])
  .describe('"execute" makes the call at once; "suggest" puts it before people, who decide.')

const REASON = {
  suggest: 'Why this call should be made, for the people who decide about it.',
  hybrid: 'Why you make this call. People read it when you suggest.',
} as const

const NOTE = {
  suggest: '\n- You may only suggest: people decide about the call, and you get its result when they have approved it.',
  hybrid: '',
} as const

const NEEDS_REASON: ParsedArguments = {
  ok: false,
  message: 'The arguments are not valid:\n- reasoning: is required (string)',
}

/** Made once per tool and mode, so that every step of a run offers the same object. */
const known = { suggest: new WeakMap<CallTool, CallTool>(), hybrid: new WeakMap<CallTool, CallTool>() }

export function offeredTool(tool: CallTool, mode: ExecutionMode): CallTool {
  if (mode === 'execute' || tool.effect === 'readonly') return tool
  const made = known[mode].get(tool) ?? offer(tool, mode)
  known[mode].set(tool, made)
  return made
}

/** The arguments that Muster added to the tool's own, as the model gave them. */
export function addedArguments({ offered }: CallTool, args: unknown): { reasoning?: unknown; apply?: unknown } {
  if (!offered || !isRecord(args)) return {}
  const given = Object.fromEntries(offered.added.map((name) => [name === 'muster_apply' ? 'apply' : name, args[name]]))
  return given
}

function offer(tool: CallTool, mode: 'suggest' | 'hybrid'): CallTool {
  const taken = propertiesOf(tool.inputSchema)
  // A schema behind a reference may have any arguments, so none is added to it.
  if (taken === null) return { ...tool, offered: { tool, added: [] } }
  const field = { reasoning: reasoning.describe(REASON[mode]), apply }
  const chosen = mode === 'suggest' ? null : (['apply', 'muster_apply'].find((name) => !taken.has(name)) ?? null)
  const mayRead = tool.effectOf !== undefined
  const shape: z.ZodRawShape = {
    ...(chosen === null ? {} : { [chosen]: mayRead ? field.apply.optional() : field.apply }),
    ...(taken.has('reasoning')
      ? {}
      : { reasoning: mode === 'hybrid' || mayRead ? field.reasoning.optional() : field.reasoning }),
  }
  const added = Object.keys(shape)
  const beside = zodArguments(z.strictObject(shape))
  const needsReason = mode === 'suggest' && added.includes('reasoning')
  return {
    ...tool,
    description: `${tool.description}${NOTE[mode]}`,
    inputSchema: withProperties(tool.inputSchema, beside.inputSchema),
    offered: { tool, added },
    parse: (args) => {
      if (!isRecord(args)) return tool.parse(args)
      const isOurs = ([name]: [string, unknown]): boolean => added.includes(name)
      const ours = Object.entries(args).filter(isOurs)
      const checked = beside.parse(Object.fromEntries(ours))
      if (!checked.ok) return checked
      const parsed = tool.parse(Object.fromEntries(Object.entries(args).filter((entry) => !isOurs(entry))))
      if (!parsed.ok || !needsReason || args.reasoning !== undefined) return parsed
      return tool.effectOf?.(parsed.args, defaultSettings) === 'readonly' ? parsed : NEEDS_REASON
    },
  }
}

const CHOICES = ['anyOf', 'oneOf', 'allOf'] as const

/** The names of the arguments that a schema describes, in any of its choices; null if it may have others. */
function propertiesOf(schema: JsonSchema): Set<string> | null {
  if ('$ref' in schema) return null
  const names = new Set(isRecord(schema.properties) ? Object.keys(schema.properties) : [])
  for (const choice of CHOICES) {
    for (const branch of Array.isArray(schema[choice]) ? schema[choice] : []) {
      const below = isRecord(branch) ? propertiesOf(branch) : new Set<string>()
      if (below === null) return null
      for (const name of below) names.add(name)
    }
  }
  return names
}

/** Each choice that describes its arguments gets the added ones, because it may allow no others. */
function withProperties(schema: JsonSchema, added: JsonSchema): JsonSchema {
  const choices = CHOICES.flatMap((choice) => {
    const branches = schema[choice]
    return Array.isArray(branches)
      ? [[choice, branches.map((branch) => (isRecord(branch) ? withOptional(branch, added) : branch))]]
      : []
  })
  const required = [...listOf(schema.required), ...listOf(added.required)]
  return {
    ...schema,
    ...Object.fromEntries(choices),
    properties: { ...recordOf(schema.properties), ...recordOf(added.properties) },
    ...(required.length > 0 ? { required } : {}),
  }
}

function withOptional(branch: JsonSchema, added: JsonSchema): JsonSchema {
  const { required: _, ...optional } = added
  return isRecord(branch.properties) || CHOICES.some((choice) => choice in branch)
    ? withProperties(branch, optional)
    : branch
}

const recordOf = (value: unknown): Record<string, unknown> => (isRecord(value) ? value : {})
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])
