// The answers of the API as far as commands read them. Fields that this release does not know pass through to --json,
// so that a command and a server of neighbouring releases understand each other.
import { z } from 'zod'
import { agentSchema } from '../kernel/agent.ts'
import { flowRunSchema } from '../kernel/flow-run.ts'
import { projectSchema } from '../kernel/project.ts'
import { forkedRunSchema, runEffectSchema, runSchema } from '../kernel/run.ts'
import { approvalResultSchema, taskSchema } from '../kernel/task.ts'
import type { ApiClient } from './client.ts'

export const projectAnswer = projectSchema.pick({ id: true, name: true, halted_at: true, created_at: true }).loose()
export type ProjectAnswer = z.infer<typeof projectAnswer>

export const agentAnswer = agentSchema
  .pick({ id: true, name: true, role: true, status: true, paused_for: true, enabled: true })
  .extend(agentSchema.pick({ model: true, trigger_type: true, token_allocation: true, token_used: true }).shape)
  .loose()
export type AgentAnswer = z.infer<typeof agentAnswer>

export const runAnswer = runSchema
  .pick({ id: true, agent_id: true, status: true, trigger: true, input: true, summary: true, created_at: true })
  .extend(runSchema.pick({ error_code: true, error_message: true, pause_reason: true, step_count: true }).shape)
  .extend(runSchema.pick({ parent_run_id: true, duration: true, completed_at: true, usage: true }).shape)
  // A server of an earlier release does not send these.
  .extend(
    runSchema
      .pick({
        resumed_as: true,
        max_steps: true,
        is_wait: true,
        waiting_for: true,
        wait_message: true,
        next_try_at: true,
      })
      .partial().shape,
  )
  .loose()
export type RunAnswer = z.infer<typeof runAnswer>

export const forkAnswer = runAnswer.extend(forkedRunSchema.pick({ may_repeat: true }).partial().shape)

export const effectAnswer = runEffectSchema.pick({ tool: true, args: true, outcome: true, at: true }).loose()
export type EffectAnswer = z.infer<typeof effectAnswer>

export const taskAnswer = taskSchema
  .pick({ id: true, kind: true, title: true, description: true, status: true, priority: true, created_at: true })
  .extend(taskSchema.pick({ assigned_to: true, created_by: true, changes: true, reasoning: true }).shape)
  .extend(taskSchema.pick({ run_id: true, metadata: true, result: true }).shape)
  .loose()
export type TaskAnswer = z.infer<typeof taskAnswer>

export const approvalAnswer = approvalResultSchema.loose()

export const flowRunAnswer = flowRunSchema
  .pick({ id: true, flow_id: true, pattern: true, status: true, input: true, output: true, error: true })
  .extend(flowRunSchema.pick({ progress: true, eta: true, created_at: true, completed_at: true }).shape)
  .extend(flowRunSchema.pick({ cancel_requested_at: true, duration: true, usage: true }).shape)
  .loose()
export type FlowRunAnswer = z.infer<typeof flowRunAnswer>

export const flowAnswer = z.looseObject({
  id: z.string(),
  name: z.string(),
  enabled: z.boolean(),
  root: z.looseObject({ type: z.string() }),
})
export type FlowAnswer = z.infer<typeof flowAnswer>

export const templateAnswer = z.looseObject({
  name: z.string(),
  title: z.string(),
  description: z.string(),
  pattern: z.string(),
  example: z.looseObject({ input: z.unknown() }),
})
export type TemplateAnswer = z.infer<typeof templateAnswer>

export const pageAnswer = <Item extends z.ZodType>(item: Item) =>
  z.looseObject({ items: z.array(item), next_cursor: z.string().nullable() })

const LARGEST_PAGE = 200

/** The items of a list, page by page, up to `most`; `isCut` says that the list has more. */
export async function readList<Item extends z.ZodType>(
  client: ApiClient,
  path: string,
  item: Item,
  { query = {}, most }: { query?: Record<string, string | undefined>; most: number },
): Promise<{ items: z.output<Item>[]; isCut: boolean }> {
  const items: z.output<Item>[] = []
  let cursor: string | null = null
  do {
    const search = new URLSearchParams({ limit: String(Math.min(LARGEST_PAGE, most - items.length)) })
    for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, value)
    if (cursor !== null) search.set('cursor', cursor)
    const page: { items: z.output<Item>[]; next_cursor: string | null } = await client.ask(
      `${path}?${search}`,
      pageAnswer(item),
    )
    items.push(...page.items)
    cursor = page.next_cursor
  } while (cursor !== null && items.length < most)
  return { items, isCut: cursor !== null }
}
