// Between the form of an agent and its definition. The draft has the same paths as the definition, so that a problem the
// server names is shown beside the field of that path.

import {
  type Agent,
  type AgentDefinition,
  agentDefaults,
  agentDefinition,
  agentInput,
} from '../../../../src/kernel/agent.ts'
import { errorText } from '../../../../src/kernel/error-text.ts'
import { explainIssue, problemsOf } from '../../../../src/kernel/explain-issue.ts'
import { sentenceAt } from '../../../../src/kernel/sentence-at.ts'
import { type TypedNumber, typedMs, typedNumber } from '../../parts/typed-number.ts'

export interface AgentDraft {
  name: string
  role: string
  /** The instructions are a text of the agent itself, or a prompt of the library. */
  isFromLibrary: boolean
  prompt: string
  prompt_id: string
  model: {
    provider: string
    name: string
    temperature: TypedNumber
    max_output_tokens: TypedNumber
    context_tokens: TypedNumber
  }
  tools: string[]
  flow_type: AgentDefinition['flow_type']
  steps: StepDraft[]
  max_iterations: TypedNumber
  flow: string
  max_steps: TypedNumber
  /** In seconds. */
  default_timeout: TypedNumber
  trigger_type: AgentDefinition['trigger_type']
  cron_schedule: string
  timezone: string
  catch_up: AgentDefinition['catch_up']
  reaction_config: NonNullable<AgentDefinition['reaction_config']>
  execution_mode: AgentDefinition['execution_mode']
  capabilities: {
    canCreateObjects: boolean
    canUpdateObjects: boolean
    canDeleteObjects: boolean
    isForAllTypes: boolean
    allowedObjectTypes: string[]
  }
  require_approval: string[]
  senior_id: string | null
  competencies: string[]
  token_allocation: TypedNumber
  enabled: boolean
}

export interface StepDraft {
  /** Tells the steps apart while they are moved. */
  key: string
  prompt: string
  hasOwnTools: boolean
  tools: string[]
}

export const blankDefinition: AgentDefinition = { name: '', ...agentDefaults }

/** The form of a new agent begins with it. Deleting is a choice of the person; the API has other defaults. */
export const firstDefinition: AgentDefinition = {
  ...blankDefinition,
  capabilities: { ...blankDefinition.capabilities, canDeleteObjects: false },
}

/** Only what people define: no id, status or figures. */
export function definitionOf(agent: Agent): AgentDefinition {
  const names = Object.keys(blankDefinition) as (keyof AgentDefinition)[] // the fields of a definition, all of them
  return Object.fromEntries(names.map((name) => [name, agent[name]])) as unknown as AgentDefinition // as picked above
}

const typed = (value: number | null | undefined): TypedNumber => value ?? ''

export function draftOf(definition: AgentDefinition): AgentDraft {
  const { model, capabilities, reaction_config, default_timeout } = definition
  return {
    ...definition,
    isFromLibrary: definition.prompt_id !== null,
    prompt: definition.prompt ?? '',
    prompt_id: definition.prompt_id ?? '',
    model: {
      provider: model?.provider ?? '',
      name: model?.name ?? '',
      temperature: typed(model?.temperature),
      max_output_tokens: typed(model?.max_output_tokens),
      context_tokens: typed(model?.context_tokens),
    },
    steps: definition.steps.map(({ prompt, tools }, index) => ({
      key: String(index),
      prompt,
      hasOwnTools: tools !== undefined,
      tools: tools ?? [],
    })),
    max_iterations: typed(definition.max_iterations),
    flow: definition.flow ?? '',
    max_steps: typed(definition.max_steps),
    default_timeout: default_timeout === null ? '' : default_timeout / 1_000,
    cron_schedule: definition.cron_schedule ?? '',
    reaction_config: {
      objectTypes: [],
      events: ['created', 'updated', 'deleted'],
      ignoreSelfTriggered: true,
      ignoreAgentTriggered: false,
      concurrencyStrategy: 'skip',
      ...reaction_config,
    },
    capabilities: {
      ...capabilities,
      isForAllTypes: capabilities.allowedObjectTypes === undefined,
      allowedObjectTypes: capabilities.allowedObjectTypes ?? [],
    },
    token_allocation: typed(definition.token_allocation),
  }
}

const numberOf = (value: TypedNumber): number | null => typedNumber(value) as number | null // the API refuses a text
/** Browsers paste line ends as CRLF. */
const textOf = (text: string): string | null => (text.trim() === '' ? null : text.replaceAll('\r\n', '\n'))

/** The definition that the draft means. Fields of another trigger stay; steps and a flow belong to one way of working. */
export function definitionFrom(draft: AgentDraft): AgentDefinition {
  const { isFromLibrary, reaction_config, capabilities, default_timeout, flow_type, trigger_type } = draft
  const { isForAllTypes, allowedObjectTypes, ...rights } = capabilities
  const isReaction = trigger_type === 'reaction' || reaction_config.objectTypes.length > 0
  return {
    name: draft.name.trim(),
    role: draft.role.trim(),
    prompt: isFromLibrary ? null : textOf(draft.prompt),
    prompt_id: isFromLibrary && draft.prompt_id.trim() !== '' ? draft.prompt_id.trim() : null,
    model: modelFrom(draft.model),
    tools: draft.tools,
    flow_type,
    steps:
      flow_type === 'sequential'
        ? draft.steps.map(({ prompt, hasOwnTools, tools }) => ({ prompt, ...(hasOwnTools && { tools }) }))
        : [],
    max_iterations: numberOf(draft.max_iterations),
    flow: flow_type === 'flow' && draft.flow.trim() !== '' ? draft.flow.trim() : null,
    max_steps: numberOf(draft.max_steps),
    default_timeout: typedMs(default_timeout) as number | null, // the API refuses a text
    trigger_type,
    cron_schedule: draft.cron_schedule.trim() === '' ? null : draft.cron_schedule.trim(),
    timezone: draft.timezone.trim(),
    catch_up: draft.catch_up,
    reaction_config: isReaction ? reaction_config : null,
    execution_mode: draft.execution_mode,
    capabilities: { ...rights, ...(!isForAllTypes && { allowedObjectTypes }) },
    require_approval: draft.require_approval,
    senior_id: draft.senior_id,
    competencies: draft.competencies,
    token_allocation: numberOf(draft.token_allocation),
    enabled: draft.enabled,
  }
}

const OUTPUT_TOKENS = 4_096

/** `provider/name` typed as the model names the provider too. */
function modelFrom({ provider, name, ...numbers }: AgentDraft['model']): AgentDefinition['model'] {
  const [, before = '', after = ''] = /^([^/]+)\/(.+)$/.exec(name.trim()) ?? []
  const chosen =
    provider.trim() === '' && before !== ''
      ? { provider: before, name: after }
      : { provider: provider.trim(), name: name.trim() }
  if (chosen.provider === '' && chosen.name === '') return null
  const [temperature, output, context] = [numbers.temperature, numbers.max_output_tokens, numbers.context_tokens].map(
    numberOf,
  )
  return {
    ...chosen,
    max_output_tokens: output ?? OUTPUT_TOKENS,
    ...(typeof temperature === 'number' && { temperature }),
    ...(typeof context === 'number' && { context_tokens: context }),
  }
}

/** Only what differs is sent, so that what others change meanwhile stays. */
export function changesIn(definition: AgentDefinition, before: AgentDefinition): Partial<AgentDefinition> {
  const names = Object.keys(definition) as (keyof AgentDefinition)[] // a definition has no other fields
  const changed = names.filter((name) => sortedJson(definition[name]) !== sortedJson(before[name]))
  return Object.fromEntries(changed.map((name) => [name, definition[name]]))
}

const sortedJson = (value: unknown): string =>
  JSON.stringify(value, (_, each: unknown) =>
    typeof each === 'object' && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : each,
  ) ?? ''

/** The definition in the text, or the reasons why there is none, in the words of the server. */
export function parseDefinition(text: string): { definition: AgentDefinition } | { problems: string[] } {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    return { problems: [`This is no JSON: ${errorText(error)}`] }
  }
  const parsed = agentInput.safeParse(value, { error: explainIssue })
  if (parsed.success) return { definition: agentDefinition.parse({ ...blankDefinition, ...parsed.data }) }
  return {
    problems: problemsOf(parsed.error.issues).map(({ path, message }) => sentenceAt(path || 'The agent', message)),
  }
}

/** Names that are typed or pasted with commas between them. A name that was there before stays as it is. */
export const splitNames = (values: readonly string[], before: readonly string[]): string[] => [
  ...new Set(
    values.flatMap((value) =>
      before.includes(value) ? [value] : value.split(/[,\n]/).flatMap((name) => name.trim() || []),
    ),
  ),
]

/** The tools whose names hold the letters: a whole name first, then those that begin with the letters. */
export function suggestedTools(names: readonly string[], letters: string): string[] {
  const sought = letters.trim().toLowerCase()
  const distance = (name: string): number => (name === sought ? 0 : name.startsWith(sought) ? 1 : 2)
  return names
    .filter((name) => name.toLowerCase().includes(sought))
    .toSorted((one, other) => distance(one.toLowerCase()) - distance(other.toLowerCase()))
}
