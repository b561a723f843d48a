// The events that a journal may hold about a run. An event is written once and read for ever: by the stream, by the
// list of steps and by the process that takes the run over, which rebuilds the run's state from the events alone.
import type { ReasoningPart } from './model-call.ts'
import type { BlockedReason, PauseReason, StepUsage } from './run.ts'
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

/** The stage of a run in its pipeline: the step of a sequential agent, the iteration of a loop. Counted from 0. */
type Stage = number

export type RunEvent =
  | { kind: 'run.started'; data: { agent_id: string; input: unknown; resumed_from?: string; forked_from?: string } }
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
      }
    }

export const finalKinds: ReadonlySet<string> = new Set(['run.completed', 'run.failed', 'run.cancelled'])
