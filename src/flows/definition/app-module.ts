// The interface of the package muster-agents, for app modules.
import type { BuiltInNodeInput } from '../machine/built-in-patterns.ts'

export {
  type AppAgent,
  type AppArguments,
  type AppFlow,
  type AppFlowDefinition,
  type AppFunction,
  type AppInput,
  type AppModule,
  type AppTool,
  defineApp,
} from '../../kernel/app.ts'
export type {
  ChangedRequest,
  Middleware,
  MiddlewareCall,
  MiddlewareContext,
  MiddlewareMessage,
  MiddlewareRequest,
  MiddlewareResponse,
} from '../../kernel/middleware.ts'

export type FlowTree = BuiltInNodeInput

/** Types the tree of a flow: an unknown field, a missing one or a wrong value is an error in the editor. */
export function defineFlow(root: FlowTree): FlowTree {
  return root
}
