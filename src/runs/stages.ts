import type { LanguageModelV4FunctionTool } from '@ai-sdk/provider'
import { type Agent, DEFAULT_ITERATIONS } from '../kernel/agent.ts'
import type { ExecutionMode } from '../kernel/rights.ts'
import type { RunEvent } from '../kernel/run-event.ts'
import type { Tool } from '../kernel/tool.ts'
import { completed, type End } from './end.ts'
import type { RunDeps, Session, StageTools } from './session.ts'

/** A pass through the pipeline ended with this text: answers the run's end, or the event that begins the next pass. */
export function nextStage(
  { agent, state, run }: Session,
  output: string,
): { end: End; event?: never } | { end: null; event: RunEvent } {
  const { stage } = state
  if (run.answer) return { end: completed(output) }
  switch (agent.flow_type) {
    case 'single':
      return { end: completed(output) }
    case 'sequential':
      if (stage + 1 >= agent.steps.length) return { end: completed(output) }
      return { end: null, event: { kind: 'stage.completed', data: { stage, output, next: 'output' } } }
    case 'loop':
      if (stage + 1 >= (agent.max_iterations ?? DEFAULT_ITERATIONS)) return { end: completed(output) }
      return { end: null, event: { kind: 'stage.completed', data: { stage, output, next: 'history' } } }
  }
}

/** The tools of a stage: a sequential step may name its own; a loop always has its exit; a senior has its own tools. */
export async function stageTools(
  deps: Pick<RunDeps, 'resolveTools' | 'seniorTools'>,
  agent: Agent,
  stage: number,
  { mode, isSenior }: { mode: ExecutionMode; isSenior: boolean },
): Promise<{ tools: StageTools } | { missing: string[] }> {
  const own = agent.flow_type === 'sequential' ? agent.steps[stage]?.tools : undefined
  const names = [...(own ?? agent.tools)]
  for (const name of isSenior ? (deps.seniorTools ?? []) : []) if (!names.includes(name)) names.push(name)
  if (agent.flow_type === 'loop' && !names.includes('finish_loop')) names.push('finish_loop')
  const resolved = await deps.resolveTools(agent.project_id, names)
  if (resolved.missing.length > 0) return { missing: resolved.missing }
  const tools = resolved.tools.map((tool) => (tool.kind === 'write' ? tool.inMode(mode) : tool))
  const byName = new Map<string, Tool>(tools.map((tool) => [tool.name, tool]))
  return { tools: { index: stage, byName, faces: tools.map(faceOf) } }
}

/** A run that decides something calls nothing. */
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
