import type { BuiltInNode, BuiltInType } from '../machine/built-in-patterns.ts'

/** A flow that is ready to run, and a starting point. It needs no agent: its leaves are built-in functions. */
export interface FlowTemplate {
  /** The name of the template in `POST /flow-runs {template}`. */
  name: string
  title: string
  description: string
  /** The input to give, the output to expect, and the first things to change. */
  usage: string
  /** The type of the flow's root. */
  pattern: BuiltInType
  example: { input: Readonly<Record<string, unknown>> }
  root: BuiltInNode
}
