import type { ToolContext } from '../../kernel/tool.ts'

/** Waits without the slot that the leaf holds, so that other leaves may work meanwhile, and without its timeout. */
export type WhileIdle = <Value>(wait: () => Promise<Value>) => Promise<Value>

export interface FunctionContext extends ToolContext {
  leafId?: string
  /** The scope of the key: the same if the leaf is begun again with other arguments. */
  scope?: string
  whileIdle?: WhileIdle
}
