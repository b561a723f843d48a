import { cutText } from '../kernel/cut-text.ts'
import { isRecord } from '../kernel/is-record.ts'
import { fitsTool, type Rights } from '../kernel/rights.ts'
import type { Tool, ToolEffect } from '../kernel/tool.ts'
import { listedName } from '../tools/tool-identity.ts'
import { addedArguments } from './offered-tool.ts'

export interface AnnouncedCall {
  tool: Tool
  /** The arguments as the model gave them. */
  given: unknown
  effect: ToolEffect | 'run'
  /** The text of the step. */
  text: string
}

const MAX_REASONING = 20_000

/** Tells whether a person decides about the call before it is made, and why the agent wants it; null if nobody must. */
export function approvalFor(rights: Rights, call: AnnouncedCall): { reasoning: string } | null {
  const { tool, given, text } = call
  if (!isNamed(rights, tool) && !isSuggested(rights, call)) return null
  const reason = isRecord(given) && typeof given.reasoning === 'string' ? given.reasoning.trim() : ''
  const reasoning = reason === '' ? text : reason
  return { reasoning: cutText(reasoning, MAX_REASONING, '…') }
}

/** Tells whether `require_approval` names the tool. */
export const isNamed = ({ require_approval: named }: Pick<Rights, 'require_approval'>, tool: Tool): boolean =>
  named.some((pattern) => fitsTool(pattern, listedName(tool)))

/** The tools of the graph make suggestions of their own, and those that only read have no effect. */
function isSuggested({ mode }: Rights, { tool, given, effect }: AnnouncedCall): boolean {
  if (tool.kind !== 'call' || effect === 'readonly' || effect === 'run') return false
  return mode === 'suggest' || (mode === 'hybrid' && addedArguments(tool, given).apply !== 'execute')
}
