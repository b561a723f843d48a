// An app module: functions, tools, agents, flows and middleware of a team, as its default export.
import type { z } from 'zod'
import type { agentInput } from './agent.ts'
import type { Middleware } from './middleware.ts'
import type { JsonSchema, ToolContext, ToolEffect } from './tool.ts'

/** A zod schema, or a JSON schema as a plain object. */
export type AppInput = z.ZodType | JsonSchema

export type AppArguments<Input extends AppInput> = Input extends z.ZodType ? z.output<Input> : Record<string, unknown>

export interface AppTool<Input extends AppInput = AppInput> {
  description: string
  input: Input
  /** The default is `unsafe`: a call that was cut off is never repeated without a person's word. */
  effect?: ToolEffect
  /** True if repeating the same call is the tool's purpose. */
  poller?: boolean
  /** The time limit in milliseconds, in place of the project's tool_timeout. */
  timeout?: number
  /** Must heed `ctx.signal` and return JSON. */
  execute(args: AppArguments<Input>, ctx: ToolContext): unknown
}

/** A function that leaves of a flow call, with an input of its author's choice. Heeds `ctx.signal`, returns JSON. */
export type AppFunction = (input: never, ctx: ToolContext) => unknown

/** A tree of nodes, each with its `type`; checked when the flow is stored, at start. `defineFlow` types it. */
export type AppFlow = object

export interface AppFlowDefinition {
  name: string
  root: AppFlow
  enabled?: boolean | undefined
}

type AgentFields = z.input<typeof agentInput>

/** A schedule needs its times, and a reaction the changes that it reacts to. */
type AgentTrigger =
  | { trigger_type?: 'manual' | 'webhook' | undefined }
  | { trigger_type: 'schedule'; cron_schedule: string }
  | { trigger_type: 'reaction'; reaction_config: NonNullable<AgentFields['reaction_config']> }

export type AppAgent = AgentFields & AgentTrigger

export interface AppModule<Inputs extends Record<string, AppInput> = Record<string, AppInput>> {
  /** The project of its agents and flows, made if missing, and kept if it is renamed. Default: the oldest project. */
  project?: string
  functions?: Record<string, AppFunction>
  tools?: { [Name in keyof Inputs]: AppTool<Inputs[Name]> }
  /** Agents by name, or a list of definitions that carry their names. */
  agents?: Record<string, Omit<AgentFields, 'name'> & AgentTrigger> | AppAgent[]
  /** Flows by name, as trees or as `{root, enabled?}`, or a list of flows with their names. */
  flows?: Record<string, AppFlow> | AppFlowDefinition[]
  /** Hooks around the model calls and tool calls of every run, in this order. */
  middleware?: Middleware[]
}

/** Types an app module: the arguments of each tool follow from its input. Returns the module unchanged. */
export function defineApp<Inputs extends Record<string, AppInput>>(app: AppModule<Inputs>): AppModule<Inputs> {
  return app
}
