import type { Log } from './log.ts'
import type { Settings } from './project.ts'
import type { ExecutionMode, Rights } from './rights.ts'
import type { BlockedReason } from './run.ts'

/** keyed: the same key twice is one effect · unsafe: must not be repeated without a person's word. */
export type ToolEffect = 'readonly' | 'keyed' | 'unsafe'

export type JsonSchema = Readonly<Record<string, unknown>>

/** Parsed arguments, or the sentence that tells the model the problem. */
export type ParsedArguments = { ok: true; args: unknown } | { ok: false; message: string }

/** The part of a tool that a model is told, and the check of its arguments. */
export interface ToolFace {
  name: string
  description: string
  inputSchema: JsonSchema
  parse(args: unknown): ParsedArguments
  /** Set on a tool with arguments for the people who decide about its calls (runs/offered-tool.ts). */
  offered?: { tool: ToolFace; added: readonly string[] }
}

/** The context that a tool is given. The names are those that app modules use. */
export interface ToolContext {
  /** Fires at the tool's timeout, at cancel and at the run's deadline. A tool must heed the signal. */
  signal: AbortSignal
  /** The same for every attempt of a call: an effect that is keyed by this text happens once. */
  key: string
  /** 1 for the first attempt, and higher after a crash cut off an earlier one. */
  attempt: number
  run_id: string
  project_id: string
  log: Log
  /** Reports the tool's progress, which the run's stream shows. */
  emit(progress: Readonly<Record<string, unknown>>): void
}

/** Thrown by a tool whose request was sent and whose answer did not come: nobody knows whether the call took effect. */
export class OutcomeUnknown extends Error {}

/** A tool that is called and returns a result. A thrown error is an error result to the model. */
export interface CallTool extends ToolFace {
  kind: 'call'
  /** The effect of any call; if calls differ, the effect of the worst one. */
  effect: ToolEffect
  /** The effect of this very call. Asked before the call is announced; the answer is journalled with the call. */
  effectOf?(args: unknown, settings: Settings): ToolEffect
  /** True if repeating the same call is this tool's purpose; the doom-loop guard allows it. */
  isPoller: boolean
  /** The time limit, in place of the project's tool_timeout. */
  timeoutMs: number | null
  /** The name under which agents list the tool, if the model sees another one: `mcp:<server>/<tool>`. */
  origin?: string
  execute(args: unknown, context: ToolContext): Promise<unknown>
}

/** A tool that the run itself carries out: it starts a sub-run, asks people, ends a loop. */
export interface RunTool extends ToolFace {
  kind: 'spawn_agent' | 'ask_human' | 'finish_loop'
}

/** A tool that changes Muster's data. The change and the journal's event are one transaction. */
export interface WriteTool extends ToolFace {
  kind: 'write'
  /** The tool as the models of runs in this mode see it: a suggestion must give a reason. */
  inMode(mode: ExecutionMode): WriteTool
}

export interface WriteCall {
  name: string
  args: unknown
  /** Names the call among all calls. The rows that it makes have ids from it. */
  ref: string
  projectId: string
  runId: string
  agentId: string
  /** False for a part of a supervisor system, which only its run's rights bind. */
  hasAgent: boolean
  /** The most that the run could do when it was started; its present rights are read at the time of the call. */
  bounds: Partial<Rights>
  /** Set if a person has approved this very call: it is not put before people once more. */
  approval?: { by: string | null }
  /** The runs above this one, from the top. */
  ancestors: readonly string[]
  /** The depth of the changes that this run makes. */
  depth: number
}

export interface WriteResult {
  result: unknown
  isError: boolean
  blocked: BlockedReason | null
  /** True if the change started runs, so that a worker takes them. */
  hasStarted: boolean
  /** True if the change gave agents tasks, or let them work again. */
  hasTasks?: boolean
  /** Set if the agent asked for something that it may not do: the name of the entry in the audit log. */
  refused?: 'task.refused' | 'budget.refused'
}

export type Tool = CallTool | RunTool | WriteTool
