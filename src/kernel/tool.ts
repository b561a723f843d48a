import type { Log } from './log.ts'
import type { Settings } from './project.ts'
import type { ExecutionMode, Rights } from './rights.ts'
import type { BlockedReason } from './run.ts'

/** readonly: changes nothing · keyed: the same key twice is one effect · unsafe: must not be repeated unseen. */
export type ToolEffect = 'readonly' | 'keyed' | 'unsafe'

export type JsonSchema = Readonly<Record<string, unknown>>

/** Parsed arguments, or the sentence that tells the model what is wrong with them. */
export type ParsedArguments = { ok: true; args: unknown } | { ok: false; message: string }

/** What a model is told about a tool, and how its arguments are checked. */
export interface ToolFace {
  name: string
  description: string
  inputSchema: JsonSchema
  parse(args: unknown): ParsedArguments
}

/** What a tool is given. Named as app modules see it. */
export interface ToolContext {
  /** Fires at the tool's timeout, at cancel and at the run's deadline. A tool must heed it. */
  signal: AbortSignal
  /** The same for every attempt of the same call: an effect keyed by it happens once. */
  key: string
  /** 1, and higher where an earlier attempt was cut off by a crash. */
  attempt: number
  run_id: string
  project_id: string
  log: Log
  /** Says how far the tool got; shown in the run's stream. */
  emit(progress: Readonly<Record<string, unknown>>): void
}

/** A tool that is called and answers. A thrown error is an error result to the model. */
export interface CallTool extends ToolFace {
  kind: 'call'
  /** Of any call; where that depends on the call, of the worst one. */
  effect: ToolEffect
  /** Of this very call. Asked once, when the call is announced; the answer is journalled with it. */
  effectOf?(args: unknown, settings: Settings): ToolEffect
  /** Repeating the same call is this tool's purpose; the doom-loop guard lets it. */
  isPoller: boolean
  /** Instead of the project's tool_timeout. */
  timeoutMs: number | null
  execute(args: unknown, context: ToolContext): Promise<unknown>
}

/** A tool that the run itself carries out: it starts a sub-run, asks people, ends a loop. */
export interface RunTool extends ToolFace {
  kind: 'spawn_agent' | 'ask_human' | 'finish_loop'
}

/**
 * A tool that changes what Muster itself keeps. The run carries it out in one transaction with the journal's word of it:
 * it happened exactly once, or not at all.
 */
export interface WriteTool extends ToolFace {
  kind: 'write'
  /** As the models of runs in this mode see it: whoever suggests must say why. */
  inMode(mode: ExecutionMode): WriteTool
}

/** One call of such a tool. */
export interface WriteCall {
  name: string
  args: unknown
  /** The same for every attempt of the same call. */
  key: string
  projectId: string
  runId: string
  agentId: string
  /** What the run could do at most when it was started; what it may do is asked when it does it. */
  bounds: Partial<Rights>
  /** The runs above it, from the top. */
  ancestors: readonly string[]
  /** Of the changes that this run makes. */
  depth: number
}

export interface WriteResult {
  result: unknown
  isError: boolean
  blocked: BlockedReason | null
  /** Runs were started: somebody may take them. */
  hasStarted: boolean
}

export type Tool = CallTool | RunTool | WriteTool
