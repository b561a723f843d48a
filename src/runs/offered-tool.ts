// A tool whose calls people may decide about, as the agent sees it: with "reasoning", and in hybrid mode "apply", beside its
// own arguments. The added arguments are taken out before the tool is called.
import { z } from 'zod'
import { isRecord } from '../kernel/is-record.ts'
import type { ExecutionMode } from '../kernel/rights.ts'
import type { JsonSchema, Tool, ToolFace } from '../kernel/tool.ts'
import { zodArguments } from '../tools/arguments.ts'

const reasoning = z.string().min(1).max(20_000).regex(/\S/, 'must not be blank')
const apply = z
  .enum(['execute', 'suggest'])
  .describe('"execute" makes the call at once; "suggest" puts it before people, who decide.')

/** suggest: people decide about each call · hybrid: the agent chooses · approve: the tool is named in require_approval. */
type Form = 'suggest' | 'hybrid' | 'approve'

const REASON: Record<Form, string> = {
  suggest: 'Why this call should be made, for the people who decide about it.',
  hybrid: 'Why you make this call. People read it when you suggest.',
  approve: 'Why this call should be made, for the people who decide about it.',
}

const NOTE: Record<Form, string> = {
  suggest: '\n- You may only suggest: people decide about the call, and you get its result when they have approved it.',
  hybrid: '',
  approve: '\n- People decide about each call of this tool. You get the result when they have approved the call.',
}

/** Made once per tool and form, so that every step of a run offers the same object. */
const known = new WeakMap<Tool, Map<string, Tool>>()

export function offeredTool<Offered extends Tool>(tool: Offered, mode: ExecutionMode, isNamed: boolean): Offered {
  const isChanging = tool.kind === 'call' && tool.effect !== 'readonly'
  const form = mode !== 'execute' && isChanging ? mode : isNamed ? 'approve' : null
  if (form === null) return tool
  const made = known.get(tool) ?? new Map<string, Tool>()
  known.set(tool, made)
  const key = `${form} ${isNamed}`
  const offered = made.get(key) ?? { ...tool, ...offer(tool, form, isNamed) }
  made.set(key, offered)
  return offered as Offered // the map holds forms of this very tool
}

/** The arguments that Muster added to the tool's own, as the model gave them. */
export function addedArguments({ offered }: ToolFace, args: unknown): { reasoning?: unknown; apply?: unknown } {
  if (!offered || !isRecord(args)) return {}
  const given = Object.fromEntries(offered.added.map((name) => [name === 'muster_apply' ? 'apply' : name, args[name]]))
  return given
}

type Added = Pick<ToolFace, 'offered'> & Partial<Omit<ToolFace, 'name'>>

function offer(tool: Tool, form: Form, isNamed: boolean): Added {
  const taken = propertiesOf(tool.inputSchema)
  // A schema behind a reference may have any arguments, so none is added to it.
  if (taken === null) return { offered: { tool, added: [] } }
  const chosen = form === 'hybrid' ? (['apply', 'muster_apply'].find((name) => !taken.has(name)) ?? null) : null
  const hasReason = !taken.has('reasoning')
  const mayRead = tool.kind === 'call' && tool.effectOf !== undefined
  const reason = reasoning.describe(REASON[form])
  const isReasonAsked = form === 'suggest' && !mayRead
  const choice = chosen === null ? {} : { [chosen]: mayRead || isNamed ? apply.optional() : apply }
  const shown = zodArguments(
    z.strictObject({ ...choice, ...(hasReason ? { reasoning: isReasonAsked ? reason : reason.optional() } : {}) }),
  )
  // Models are asked for a reason; where one is missing, the text of the step is the reason.
  const beside = zodArguments(z.strictObject({ ...choice, ...(hasReason ? { reasoning: reason.optional() } : {}) }))
  const added = [...Object.keys(choice), ...(hasReason ? ['reasoning'] : [])]
  return {
    description: `${tool.description}${NOTE[isNamed && form === 'hybrid' ? 'approve' : form]}`,
    inputSchema: withProperties(tool.inputSchema, shown.inputSchema),
    offered: { tool, added },
    parse: (args) => {
      if (!isRecord(args)) return tool.parse(args)
      const isOurs = ([name]: [string, unknown]): boolean => added.includes(name)
      const ours = Object.entries(args).filter(isOurs)
      const checked = beside.parse(Object.fromEntries(ours))
      if (!checked.ok) return checked
      return tool.parse(Object.fromEntries(Object.entries(args).filter((entry) => !isOurs(entry))))
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
