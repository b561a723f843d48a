// The words of the pages about prompts: their text, their variables, their authors, and the variants of each.
import type { PromptMessage, PromptVariable } from '../../../../src/kernel/prompt.ts'
import type { ListedPrompt, System, Version } from '../../api/prompt-shapes.ts'
import type { Me } from '../../api/shapes.ts'

/** `with` in the address, if the variant stands alone. No variant can be called like this. */
export const ALONE = '-'

export const VARIABLES: Record<PromptVariable, string> = {
  USER_INPUT: 'the task; for a specialist, the instructions of the planner',
  PLAN_JSON: 'the plan so far',
  HISTORY_JSON: 'the summaries of the specialists so far',
  CONTEXT_METADATA: 'the context of the request, and the names of the specialists',
}

/** The messages one after another, each below the name of its role. */
export const textOf = (messages: readonly Pick<PromptMessage, 'role' | 'content'>[]): string =>
  messages.map(({ role, content }) => `[${role}]\n${content}`).join('\n\n')

export function unknownVariables(messages: readonly Pick<PromptMessage, 'content'>[]): string[] {
  const names = messages.flatMap(({ content }) => [...content.matchAll(/\{\{\s*(\w+)\s*\}\}/g)].map(([, name]) => name))
  return [...new Set(names)].filter((name) => name !== undefined && !(name in VARIABLES)) as string[] // filtered
}

export interface PromptGroup {
  promptId: string
  isRequired: boolean
  variants: ListedPrompt[]
}

/** The variants of each prompt. The API gives them by name. */
export function groupPrompts(prompts: readonly ListedPrompt[]): PromptGroup[] {
  const groups = new Map<string, PromptGroup>()
  for (const prompt of prompts) {
    const group = groups.get(prompt.prompt_id) ?? {
      promptId: prompt.prompt_id,
      isRequired: prompt.required,
      variants: [],
    }
    group.variants.push(prompt)
    groups.set(prompt.prompt_id, group)
  }
  return [...groups.values()]
}

export const namesOfLive = ({ variants }: PromptGroup): string[] =>
  variants.filter(({ deleted }) => !deleted).map(({ variant_id }) => variant_id)

/** The variant and the one beside it: as the address says, else the first two. */
export function chooseVariants(
  names: readonly string[],
  asked: { variant?: string | undefined; with?: string | undefined },
): { variant: string | null; other: string | null } {
  const variant = asked.variant ?? names[0] ?? null
  if (asked.with === ALONE) return { variant, other: null }
  const other = asked.with ?? names.find((name) => name !== variant) ?? null
  return { variant, other: other === variant ? null : other }
}

export function authorOf(
  { actor, actor_name, seeded }: Pick<Version, 'actor' | 'actor_name' | 'seeded'>,
  me: Me,
): string {
  if (seeded || actor.type === 'system') return 'Muster'
  if (actor.type === me.type && actor.id === me.id) return 'you'
  if (actor_name) return actor_name
  return { user: 'a person', key: 'an API key', instance_admin: 'the instance admin' }[actor.type] ?? actor.type
}

export interface Part {
  name: string
  promptId: string
  model: string | null
  tools: readonly string[]
  description: string | null
  isMissing: boolean
}

/** The parts of a system in the order in which they work. A part is missing if its prompt is not in the variant. */
export function partsOf(system: System, prompts: readonly ListedPrompt[]): Part[] {
  const known = new Set(
    prompts.filter(({ variant_id, deleted }) => variant_id === system.variant && !deleted).map((one) => one.prompt_id),
  )
  const { supervisor, specialists, finalizer, escalation } = system
  const parts = [
    { name: 'Planner', ...supervisor },
    ...specialists,
    { name: 'Finalizer', ...finalizer },
    { name: 'Escalation', ...escalation },
  ]
  return parts.map((part) => ({
    name: part.name,
    promptId: part.prompt_id,
    model: part.model && `${part.model.provider} / ${part.model.name}`,
    tools: 'tools' in part ? part.tools : [],
    description: ('description' in part ? part.description : null) ?? null,
    isMissing: !known.has(part.prompt_id),
  }))
}

/** The JSON of a system as a person edits it: its weight has a field of its own. */
export function editable({ supervisor, specialists, finalizer, escalation }: System): string {
  return JSON.stringify({ supervisor, specialists, finalizer, escalation }, null, 2)
}
