// The state of all projects of a caller in one answer: the work that waits for people, runs now or failed.
import { z } from 'zod'
import { agentSchema } from './agent.ts'
import { alertSchema } from './alert.ts'
import { idField, instantField } from './fields.ts'
import { flowRunSchema } from './flow-run.ts'
import { runSchema, triggerTypes } from './run.ts'
import { taskSchema } from './task.ts'
import { amountsSchema } from './usage.ts'

/**
 * The pauses that end a run until somebody resumes it, unless it tries again by itself. The inbox has the runs that wait
 * for an answer.
 */
export const stopReasons = ['step_limit', 'timeout', 'context', 'budget', 'unavailable'] as const

export const homeParts = ['waits', 'runs', 'provider_waits', 'fails', 'agents', 'usage'] as const
export type HomePart = (typeof homeParts)[number]

const flowName = { flow_name: z.string().nullable().describe('The name of the stored flow; null without one.') }

const taskOfHome = taskSchema.pick({ id: true, kind: true, title: true, created_at: true })
const alertOfHome = alertSchema
  .pick({ id: true, flow_run_id: true, suspected_cause: true, created_at: true })
  .extend({ ...flowName, pattern: flowRunSchema.shape.pattern })
const agentOfHome = agentSchema.pick({
  id: true,
  name: true,
  token_used: true,
  token_allocation: true,
  last_worked_at: true,
  created_at: true,
})
const runOfHome = runSchema
  .pick({
    id: true,
    agent_id: true,
    status: true,
    pause_reason: true,
    is_wait: true,
    waiting_for: true,
    wait_message: true,
    next_try_at: true,
    error_message: true,
    created_at: true,
    started_at: true,
    completed_at: true,
  })
  .extend({
    agent_name: z.string().nullable().describe('Null if the agent was deleted, and for runs of a supervisor system.'),
    trigger_type: z.enum(triggerTypes),
    input_line: z.string().nullable().describe('The beginning of the input in one line; null for a large input.'),
  })
const flowRunOfHome = flowRunSchema
  .pick({
    id: true,
    flow_id: true,
    pattern: true,
    status: true,
    error: true,
    progress: true,
    eta: true,
    created_at: true,
    started_at: true,
    completed_at: true,
  })
  .extend({
    ...flowName,
    waiting_for: z
      .string()
      .nullable()
      .describe('"provider <name>" of a leaf that waits for a provider and tries again by itself; null if none does.'),
    wait_message: runSchema.shape.wait_message,
    next_try_at: runSchema.shape.next_try_at,
  })

export type TaskOfHome = z.infer<typeof taskOfHome>
export type AlertOfHome = z.infer<typeof alertOfHome>
export type AgentOfHome = z.infer<typeof agentOfHome>
export type RunOfHome = z.infer<typeof runOfHome>
export type FlowRunOfHome = z.infer<typeof flowRunOfHome>

const placed = { project_id: idField, at: instantField.describe('The list is in the order of these times.') }
const runItems = [
  z.strictObject({ kind: z.literal('run'), ...placed, run: runOfHome }),
  z.strictObject({ kind: z.literal('flow_run'), ...placed, flow_run: flowRunOfHome }),
] as const
const waitItem = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('task'), ...placed, task: taskOfHome }),
  z.strictObject({ kind: z.literal('alert'), ...placed, alert: alertOfHome }),
  z.strictObject({ kind: z.literal('agent'), ...placed, agent: agentOfHome }),
])
const runItem = z.discriminatedUnion('kind', [...runItems])
export type WaitItem = z.infer<typeof waitItem>
export type RunItem = z.infer<typeof runItem>
export type OneRunItem = z.infer<(typeof runItems)[0]>

const count = {
  count: z.int(),
  has_more: z.boolean().describe('True if there may be more than were counted.'),
}
const countSchema = z.strictObject(count)
export type HomeCount = z.infer<typeof countSchema>

const listOf = <Item extends z.ZodType>(item: Item) =>
  z.strictObject({ items: z.array(item).describe('The newest of all projects, at most 50.'), ...count })

const amounts = amountsSchema.pick({ total_tokens: true, cost_usd: true })
export type AmountsOfHome = z.infer<typeof amounts>
const twoDays = z.strictObject({ today: amounts, yesterday: amounts })
export type TwoDays = z.infer<typeof twoDays>

const LEFT_OUT = 'Null if the part is incomplete.'

export const homeProjectSchema = z.strictObject({
  project_id: idField,
  halted_at: instantField.nullable(),
  agents: countSchema.nullable().describe(LEFT_OUT),
  waits: countSchema.nullable().describe(LEFT_OUT),
  runs: countSchema.nullable().describe(LEFT_OUT),
  fails: countSchema.nullable().describe(LEFT_OUT),
  usage: twoDays.nullable().describe(`Of the days of UTC. ${LEFT_OUT}`),
})
export type HomeProject = z.infer<typeof homeProjectSchema>

export const homeSchema = z.strictObject({
  since: instantField,
  waits: listOf(waitItem).describe('Tasks for people, open alerts, and agents whose tokens run short.'),
  runs: listOf(runItem).describe('Running flow runs, and running runs that are no part of another run or of a flow.'),
  provider_waits: listOf(runItems[0]).describe(
    'Runs of that kind that wait for a provider and try again by themselves.',
  ),
  fails: listOf(runItem).describe(
    'Runs of that kind that failed or stopped since then and were not resumed, and flow runs that failed or took too long.',
  ),
  projects: z.strictObject({
    items: z.array(homeProjectSchema).describe('The newest projects, at most 1,000. The lists are of these projects.'),
    has_more: z.boolean(),
  }),
  incomplete: z.array(z.enum(homeParts)).describe('The parts for which the time was not enough. They are left out.'),
})
export type Home = z.infer<typeof homeSchema>
