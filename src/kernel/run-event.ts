// The events of a run's journal. They are written once and read for ever: by the stream, by the list of steps, and by
// the process that takes the run over, which rebuilds the run's state from the events alone.

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

/** ask: a question follows · again: the answer did not fit · work: begins · done: others do the work. */
export interface OpeningStep {
  name: string
  next: 'ask' | 'again' | 'work' | 'done'
  /** The problem with the answer, for the model; or the reason for the next step, for people. */
  note: string
  /** True if the answer did not fit, even if it is not asked for again. */
  is_misfit?: boolean
}

/** A question of a node. The same question is never answered twice, even if another process executes the node later. */
interface NodeQuestion {
  name: string
  key: string
}

/** The answer of a specialist that was asked for its summary: a summary that fits, or the problem with the answer. */
type SummaryStep = { fits: AgentSummaryDecision } | { problem: string }

/**
 * timeout: the tool did not answer in its time · deadline: the time of the run was up · shutdown: the process stopped ·
 * cancel: the run was cancelled · connection: the request was sent, and no answer came.
 */
export type CutReason = 'timeout' | 'deadline' | 'shutdown' | 'cancel' | 'connection'

export type CutOff = {
  reason: CutReason
  started_at: string
  /** Milliseconds until the call was given up. */
  duration: number
  /** The tool's own words. */
  message?: string
}

export type UndecidedEntry = {
  call_id: string
  step: number
  name: string
  args: unknown
  /** Earlier releases wrote no times. */
  started_at?: string
  duration?: number
}

/** A wait for a provider: the number of waits of this call, and the time that the run waits by itself, if it does. */
interface ProviderWait {
  provider: string
  model: string
  waits: number
  wait?: number
  /** The wait that the provider asked for. */
  retry_after?: number
  /** The signals that the run knew of. A later one tells it to try at once. */
  signals?: number
}

/** The stage of a run in its pipeline: the step of a sequential agent, the iteration of a loop. Counted from 0. */
type Stage = number

export type RunEvent =
  | {
      kind: 'run.started'
      data: {
        agent_id: string | null
        input: unknown
        resumed_from?: string
        forked_from?: string
        /** A person continued the run: the counter of the doom loop begins at zero. */
        is_reset?: boolean
      }
    }
  /** The prompt of an agent with a prompt_id, as read once. `shows_task`: the task stands in the rendered text. */
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
        decision?: OpeningStep
        /** Set if a node of a supervisor's graph asked: the question to which this is an answer. */
        node?: NodeQuestion
        summary?: SummaryStep
        /** Set if middleware changed the request: the parts that the model saw; their text, cut, if they are long. */
        request_changes?: RequestChanges | string
      }
    }
  /** The call was cut off or failed and is made again; its text is void. Its tokens were spent all the same. */
  | {
      kind: 'step.restarted'
      data: {
        step: number
        reason: 'failed' | 'too_long' | 'crash' | 'timeout' | 'handed_back' | 'halted'
        message?: string
        text?: string
        usage?: StepUsage
        attempt?: number
        wait?: number
      }
    }
  | {
      kind: 'tool.started'
      data: {
        step: number
        call_id: string
        name: string
        args: unknown
        /** The same for every attempt at this call, whichever run makes it. */
        key: string
        /** Names this announcement alone. Absent in events of earlier releases, whose keys did so. */
        ref?: string
        effect: ToolEffect | 'run'
        /** Set if the call waits for a person. `reasoning`: why it should be made, in the agent's words. */
        approval?: { reasoning: string }
      }
    }
  /**
   * A person decided about a call that waited, or nobody did in time (then `by` is null). An approved call is made after
   * this event; the result of a rejected one is in the same commit.
   */
  | {
      kind: 'tool.decided'
      data: {
        step: number
        call_id: string
        task_id: string
        decision: 'approved' | 'rejected'
        by: string | null
        reason?: string
      }
    }
  | { kind: 'tool.progress'; data: { step: number; call_id: string; progress: unknown } }
  /** The call had begun and was given up before it answered; nobody knows whether it took effect. */
  | { kind: 'tool.cut_off'; data: { step: number; call_id: string; name: string } & CutOff }
  /** A tool's write was made in the same commit as this event. Middleware sees its result before the model does. */
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
        /** True if the call had begun and was given up: the result is our error, and nobody knows the outcome. */
        is_unanswered?: true
        /** True if the call was made and nobody may see its result. */
        is_withheld?: true
      }
    }
  /** One pass through the pipeline is done; its output is the input of the next pass. */
  | { kind: 'stage.completed'; data: { stage: Stage; output: string; next: 'output' | 'history' } }
  | { kind: 'context.compacted'; data: { step: number; summary: string; keep: number; usage: StepUsage } }
  /** The run waits without a slot; `not_begun` names calls that were announced and not made. */
  | { kind: 'run.parked'; data: { waits_for: string; not_begun?: string[] } }
  /** All runs below this one waited for this long, while it waited for them; the time counts for no timeout. */
  | { kind: 'run.stood_still'; data: { ms: number } }
  /** `crashes` counts since the last completed step; `charged` tells whether the owner's death is one of them. */
  | { kind: 'run.recovered'; data: { crashes: number; charged: boolean } }
  /** `is_late`: the time of the run above was up. */
  | { kind: 'run.cancel_requested'; data: { is_late?: true } }
  | { kind: 'run.continued'; data: Record<string, never> }
  /** A node of a supervisor's graph was entered. `step`: the model call that it makes next. */
  | { kind: 'node.entered'; data: { node: string; step: number } }
  | {
      kind: 'supervisor.updated'
      data: { node: string; status: string; active_agent: string | null; plan: readonly ToDo[] }
    }
  /**
   * A person answered the escalation of a supervisor's run, or let an unavailable run go on (then `task_id` is null).
   * `summaries` and `tokens` are the summaries and the used tokens before the answer, from which limits are counted.
   */
  | {
      kind: 'supervisor.answered'
      data: { task_id: string | null; answer: string; summaries: number | null; tokens?: number }
    }
  /** The run of an agent that is a flow has started its flow run, in this very commit. */
  | { kind: 'flow.started'; data: { flow_run_id: string } }
  | { kind: 'flow.ended'; data: { flow_run_id: string; status: string; duration: number } }
  | { kind: 'run.completed'; data: { summary: string } }
  /** `not_begun` names calls that were announced and not made. */
  | {
      kind: 'run.failed'
      data: { error_code: string; error_message: string; summary: string | null; not_begun?: string[] }
    }
  | { kind: 'run.cancelled'; data: { summary: string | null; not_begun?: string[] } }
  | {
      kind: 'run.paused'
      data: {
        pause_reason: PauseReason
        summary: string | null
        /** The calls whose outcomes nobody knows; the run that this one continues may have announced them. */
        calls?: UndecidedEntry[]
        /** The first of them. Earlier releases wrote and read no other. */
        call_id?: string
        call?: Omit<UndecidedEntry, 'call_id'>
        not_begun?: string[]
        /** The reason why an unavailable run could not go on. */
        error_message?: string
        /** Set if the same run tries again by itself. */
        provider_wait?: ProviderWait
      }
    }

export const finalKinds: ReadonlySet<string> = new Set(['run.completed', 'run.failed', 'run.cancelled'])
