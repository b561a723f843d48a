import type { LanguageModelV4FunctionTool } from '@ai-sdk/provider'
import { type Agent, DEFAULT_ITERATIONS } from '../kernel/agent.ts'
import type { Rights } from '../kernel/rights.ts'
import type { RunEvent } from '../kernel/run-event.ts'
import type { Tool } from '../kernel/tool.ts'
import { type End, runCompleted } from './end.ts'
import { isNamed } from './need-approval.ts'
import { offeredTool } from './offered-tool.ts'
import type { OwnedRun, RunDeps, StageTools } from './owned-run.ts'

/** Called when a pass through the pipeline ended. Returns the run's end, or the event that begins the next pass. */
export function nextStage(
  { agent, state, run }: OwnedRun,
  output: string,
): { end: End; event?: never } | { end: null; event: RunEvent } {
  const { stage } = state
  if (run.answer) return { end: runCompleted(output) }
  switch (agent.flow_type) {
    case 'single':
    case 'flow':
      return { end: runCompleted(output) }
    case 'sequential':
      if (stage + 1 >= agent.steps.length) return { end: runCompleted(output) }
      return { end: null, event: { kind: 'stage.completed', data: { stage, output, next: 'output' } } }
    case 'loop':
      if (stage + 1 >= (agent.max_iterations ?? DEFAULT_ITERATIONS)) return { end: runCompleted(output) }
      return { end: null, event: { kind: 'stage.completed', data: { stage, output, next: 'history' } } }
  }
}

/** A sequential step may name its own tools; a loop always has its exit; a senior has the tools for seniors. */
export async function stageTools(
  deps: Pick<RunDeps, 'resolveTools' | 'seniorTools'>,
  agent: Agent,
  stage: number,
  { rights, isSenior }: { rights: Pick<Rights, 'mode' | 'require_approval'>; isSenior: boolean },
): Promise<{ tools: StageTools } | { missing: string[] }> {
  const own = agent.flow_type === 'sequential' ? agent.steps[stage]?.tools : undefined
  const names = [...(own ?? agent.tools)]
  for (const name of isSenior ? (deps.seniorTools ?? []) : []) if (!names.includes(name)) names.push(name)
  if (agent.flow_type === 'loop' && !names.includes('finish_loop')) names.push('finish_loop')
  const resolved = await deps.resolveTools(agent.project_id, names)
  if (resolved.missing.length > 0) return { missing: resolved.missing }
  const tools = resolved.tools.map((tool) => toolWithin(tool, rights))
  const byName = new Map<string, Tool>(tools.map((tool) => [tool.name, tool]))
  return { tools: { index: stage, byName, faces: tools.map(faceOf) } }
}

function toolWithin(tool: Tool, rights: Pick<Rights, 'mode' | 'require_approval'>): Tool {
  const { mode } = rights
  return offeredTool(tool.kind === 'write' ? tool.inMode(mode) : tool, mode, isNamed(rights, tool))
}

/** A run that makes a decision calls no tools. */
export const noTools: StageTools = { index: 0, byName: new Map(), faces: [] }

/** Made once per tool, so that a provider's client and the token estimate see the same object at every step. */
const faces = new WeakMap<Tool, LanguageModelV4FunctionTool>()

function faceOf(tool: Tool): LanguageModelV4FunctionTool {
  const known = faces.get(tool)
  if (known) return known
  const { name, description, inputSchema } = tool
  const face: LanguageModelV4FunctionTool = { type: 'function', name, description, inputSchema: { ...inputSchema } }
  faces.set(tool, face)
  return face
}
