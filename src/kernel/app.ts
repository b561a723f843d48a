// An app module: functions, tools, agents and flows that a team writes in TypeScript or JavaScript. Its default export is
// an object of this shape; `defineApp` only types it.
import type { z } from 'zod'
import type { AgentInput } from './agent.ts'
import type { JsonSchema, ToolContext, ToolEffect } from './tool.ts'

/** A zod schema, or a JSON schema as a plain object. */
export type AppInput = z.ZodType | JsonSchema

export type AppArguments<Input extends AppInput> = Input extends z.ZodType ? z.output<Input> : Record<string, unknown>

export interface AppTool<Input extends AppInput = AppInput> {
  /** What the model reads about it. */
  description: string
  input: Input
  /** `unsafe` where it is left out: the tool is then never called a second time unseen. */
  effect?: ToolEffect
  /** Repeating the same call is its purpose. */
  poller?: boolean
  /** Milliseconds, instead of the project's tool_timeout. */
  timeout?: number
  /** Must heed `ctx.signal`. What it returns must be JSON. */
  execute(args: AppArguments<Input>, ctx: ToolContext): unknown
}

/** Leaf of a flow. Takes whatever its author says it takes; must heed `ctx.signal` and return JSON. */
export type AppFunction = (input: never, ctx: ToolContext) => unknown

/** A tree of nodes, each with its `type`; checked when it is stored, at start. */
export type AppFlow = Readonly<Record<string, unknown>>

export interface AppFlowDefinition {
  name: string
  root: AppFlow
}

export interface AppModule<Inputs extends Record<string, AppInput> = Record<string, AppInput>> {
  functions?: Record<string, AppFunction>
  tools?: { [Name in keyof Inputs]: AppTool<Inputs[Name]> }
  /** By name, or as a list of definitions that carry theirs. */
  agents?: Record<string, Omit<AgentInput, 'name'>> | AgentInput[]
  /** By name, as trees or as `{root}`, or as a list of those with their names. */
  flows?: Record<string, AppFlow> | AppFlowDefinition[]
}

/** Types an app module: the arguments of each tool follow from its input. Answers what it is given. */
export function defineApp<Inputs extends Record<string, AppInput>>(app: AppModule<Inputs>): AppModule<Inputs> {
  return app
}
