// The events that a journal may hold about a run. An event is written once and read for ever: by the stream, by the
// list of steps and by the process that takes the run over, which rebuilds the run's state from the events alone.

import type { AgentSummaryDecision } from './decision.ts'
import type { RequestChanges } from './middleware.ts'
import type { ReasoningPart } from './model-call.ts'
import type { PromptMessage } from './prompt.ts'
import type { BlockedReason, PauseReason, StepUsage } from './run.ts'
import type { ToDo } from './supervisor.ts'
import type { ToolEffect } from './tool.ts'

export interface StepCall {
  id: string
  name: string
  /** The parsed arguments, or the raw text if it could not be parsed. */
  args: unknown
  /** Data that the provider wants back with the history. */
  metadata?: unknown
}

/**
 * A decision at the beginning of a task's run. ask: another question follows · again: the answer did not fit, and is
 * asked for once more · work: the work itself begins · done: others do the work, and the run is over.
 */
export interface OpeningStep {
  name: string
  next: 'ask' | 'again' | 'work' | 'done'
  /** The problem with the answer, for the model; or the reason for what follows, for people. */
  note: string
  /** True if the answer did not fit, also where it is not asked for again. */
  is_misfit?: boolean
}

/** A question of a node: the same question is never answered twice, whoever executes the node. */
export interface NodeQuestion {
  name: string
  key: string
}

/** The answer of a specialist that was asked for its summary: it fits, or it does not, and why. */
export type SummaryStep = { fits: AgentSummaryDecision } | { problem: string }

/** The stage of a run in its pipeline: the step of a sequential agent, the iteration of a loop. Counted from 0. */
type Stage = number

export type RunEvent =
  | {
      kind: 'run.started'
      data: { agent_id: string | null; input: unknown; resumed_from?: string; forked_from?: string }
    }
  /**
   * The run of an agent with a prompt_id has read its prompt. Later owners of the run use this text. `rendered`: its
   * variables are filled in, and `shows_task` says whether the task stands in it.
   */
  | {
      kind: 'prompt.read'
      data: {
        prompt_id: string
        variant_id: string
        version: number | null
        messages: readonly PromptMessage[]
        rendered?: boolean
        shows_task?: boolean
      }
    }
  | {
      kind: 'step.completed'
      data: {
        step: number
        text: string
        tool_calls: StepCall[]
        finish_reason: string
        usage: StepUsage
        started_at: string
        duration: number
        reasoning?: ReasoningPart[]
        /** The doom-loop counter after this step's calls. */
        loop?: { last: string | null; count: number }
        /** Set if this was the call that asks for a summary. */
        wind_down?: 'step_limit' | 'timeout'
        /** Set if the run of a task asked for a decision before its work. */
        decision?: OpeningStep
        /** Set if a node of a supervisor's graph asked: the question to which this is an answer. */
        node?: NodeQuestion
        /** Set if a specialist was asked for its summary. */
        summary?: SummaryStep
        /** Set if middleware changed the request: what the model saw in its place. A text where it was cut. */
        request_changes?: RequestChanges | string
      }
    }
  /** The call was cut off or failed and is made again; its text is void. Its tokens were spent all the same. */
  | {
      kind: 'step.restarted'
      data: {
        step: number
        reason: 'failed' | 'crash' | 'timeout' | 'handed_back' | 'halted'
        message?: string
        text?: string
        usage?: StepUsage
        attempt?: number
        wait?: number
      }
    }
  | {
      kind: 'tool.started'
      data: { step: number; call_id: string; name: string; args: unknown; key: string; effect: ToolEffect | 'run' }
    }
  | { kind: 'tool.progress'; data: { step: number; call_id: string; progress: unknown } }
  /** A write was made, in this very commit. Middleware sees its result before the model does. */
  | {
      kind: 'tool.written'
      data: {
        step: number
        call_id: string
        result: unknown
        is_error: boolean
        blocked: BlockedReason | null
        started_at: string
      }
    }
  | {
      kind: 'tool.completed'
      data: {
        step: number
        call_id: string
        name: string
        result: unknown
        is_error: boolean
        blocked: BlockedReason | null
        started_at: string
        duration: number
        /** Set if a person gave the outcome of the call, in a run that continues the one that made it. */
        settled_by?: 'person'
        args?: unknown
      }
    }
  /** One pass through the pipeline is done; its output is the input of the next pass. */
  | { kind: 'stage.completed'; data: { stage: Stage; output: string; next: 'output' | 'history' } }
  | { kind: 'context.compacted'; data: { step: number; summary: string; keep: number; usage: StepUsage } }
  /** The run waits without a slot; `not_begun` names calls that were announced and not made. */
  | { kind: 'run.parked'; data: { waits_for: string; not_begun?: string[] } }
  /** `crashes` counts since the last completed step; `charged` tells whether the owner's death is one of them. */
  | { kind: 'run.recovered'; data: { crashes: number; charged: boolean } }
  | { kind: 'run.cancel_requested'; data: Record<string, never> }
  | { kind: 'run.continued'; data: Record<string, never> }
  /** A node of a supervisor's graph was entered. `step`: the model call that it makes next. */
  | { kind: 'node.entered'; data: { node: string; step: number } }
  /** A supervisor's graph has a new state. */
  | {
      kind: 'supervisor.updated'
      data: { node: string; status: string; active_agent: string | null; plan: readonly ToDo[] }
    }
  /**
   * A person has answered the escalation of a supervisor's run, or lets a run go on that was unavailable: then nobody was
   * asked, and `task_id` is null. `summaries`: their number before an answer.
   */
  | { kind: 'supervisor.answered'; data: { task_id: string | null; answer: string; summaries: number | null } }
  | { kind: 'run.completed'; data: { summary: string } }
  | { kind: 'run.failed'; data: { error_code: string; error_message: string; summary: string | null } }
  | { kind: 'run.cancelled'; data: { summary: string | null } }
  | {
      kind: 'run.paused'
      data: {
        pause_reason: PauseReason
        summary: string | null
        /** The call whose outcome nobody knows; the run that this one continues may have announced it. */
        call_id?: string
        call?: { step: number; name: string; args: unknown }
        not_begun?: string[]
        /** The reason why the run could not go on, where it was unavailable. */
        error_message?: string
      }
    }

export const finalKinds: ReadonlySet<string> = new Set(['run.completed', 'run.failed', 'run.cancelled'])
