// An app module: functions, tools, agents, flows and middleware that a team writes in TypeScript or JavaScript. Its
// default export is an object of this shape; `defineApp` only types it.
import type { z } from 'zod'
import type { AgentInput } from './agent.ts'
import type { Middleware } from './middleware.ts'
import type { JsonSchema, ToolContext, ToolEffect } from './tool.ts'

export type {
  ChangedRequest,
  Middleware,
  MiddlewareCall,
  MiddlewareContext,
  MiddlewareMessage,
  MiddlewareRequest,
  MiddlewareResponse,
} from './middleware.ts'

/** A zod schema, or a JSON schema as a plain object. */
export type AppInput = z.ZodType | JsonSchema

export type AppArguments<Input extends AppInput> = Input extends z.ZodType ? z.output<Input> : Record<string, unknown>

export interface AppTool<Input extends AppInput = AppInput> {
  /** The description that the model reads. */
  description: string
  input: Input
  /** The default is `unsafe`: the tool is then never called a second time unseen. */
  effect?: ToolEffect
  /** True if repeating the same call is the tool's purpose. */
  poller?: boolean
  /** The time limit in milliseconds, in place of the project's tool_timeout. */
  timeout?: number
  /** Must heed `ctx.signal` and return JSON. */
  execute(args: AppArguments<Input>, ctx: ToolContext): unknown
}

/** A leaf of a flow. Its author decides on the input; it must heed `ctx.signal` and return JSON. */
export type AppFunction = (input: never, ctx: ToolContext) => unknown

/** A tree of nodes, each with its `type`; checked when the flow is stored, at start. */
export type AppFlow = Readonly<Record<string, unknown>>

export interface AppFlowDefinition {
  name: string
  root: AppFlow
}

export interface AppModule<Inputs extends Record<string, AppInput> = Record<string, AppInput>> {
  functions?: Record<string, AppFunction>
  tools?: { [Name in keyof Inputs]: AppTool<Inputs[Name]> }
  /** Agents by name, or a list of definitions that carry their names. */
  agents?: Record<string, Omit<AgentInput, 'name'>> | AgentInput[]
  /** Flows by name, as trees or as `{root}`, or a list of flows with their names. */
  flows?: Record<string, AppFlow> | AppFlowDefinition[]
  /** Hooks around the model calls and tool calls of every run, in this order. */
  middleware?: Middleware[]
}

/** Types an app module: the arguments of each tool follow from its input. Returns the module unchanged. */
export function defineApp<Inputs extends Record<string, AppInput>>(app: AppModule<Inputs>): AppModule<Inputs> {
  return app
}
