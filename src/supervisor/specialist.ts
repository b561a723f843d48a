// The work of a specialist as the supervisor sees it: one summary and the state of the agent, both read from its run.

import type { Db } from '../db/pool.ts'
import { cutText } from '../kernel/cut-text.ts'
import type { AgentSummaryDecision } from '../kernel/decision.ts'
import type { PauseReason, RunStatus } from '../kernel/run.ts'
import type { RunEvent } from '../kernel/run-event.ts'
import { type AgentState, type AgentSummary, agentState, agentSummary, newAgentState } from '../kernel/supervisor.ts'
import { undecidedCalls } from '../runs/decisions.ts'
import { replayHistory } from '../runs/load-state.ts'

export interface SpecialistRun {
  id: string
  status: RunStatus
  pause_reason: PauseReason | null
  summary: string | null
  error_code: string | null
  error_message: string | null
  has_ended: boolean
  base_run_id: string | null
  base_seq: number | null
}

export async function readSpecialistRun(db: Db, runId: string): Promise<SpecialistRun | null> {
  const { rows } = await db.query<SpecialistRun>(
    `select id, status, pause_reason, summary, error_code, error_message, completed_at is not null as has_ended,
       base_run_id, base_seq
     from agent_runs where id = $1`,
    [runId],
  )
  return rows[0] ?? null
}

export interface SpecialistWork {
  summary: AgentSummary
  agent: AgentState
}

/** The most characters of a text in a summary, and of a message in the agent's state. */
const LONGEST_TEXT = 20_000
/** The most characters of a run that the agent's state keeps; the newest messages are kept. */
const MOST_KEPT = 200_000

/** The result of a specialist's run, with the work of the runs that it continues. A run without a summary has failed, and its end has the reason. */
export async function readWork(db: Db, run: SpecialistRun, agentName: string): Promise<SpecialistWork> {
  const agent = newAgentState()
  let given: AgentSummaryDecision | null = null
  let undecided: readonly string[] = []
  for await (const { kind, data } of replayHistory(db, run)) {
    const event = { kind, data } as unknown as RunEvent // written by us; unknown kinds are passed over
    const isGiven = event.kind === 'run.started' && event.data.resumed_from === undefined
    if (isGiven) agent.messages.push({ role: 'user', content: cut(asText(event.data.input)) })
    if (event.kind === 'tool.completed') {
      const { name, args, result, is_error } = event.data
      agent.tool_events.push({ name, ...(args === undefined ? {} : { args }), result: cut(asText(result)), is_error })
    }
    if (event.kind === 'run.paused') undecided = undecidedCalls(event.data).map(({ name }) => name)
    if (event.kind !== 'step.completed') continue
    const { summary, text, tool_calls: calls } = event.data
    if (summary && 'fits' in summary) given = summary.fits
    if (summary) continue
    agent.messages.push({ role: 'assistant', content: cut(text), tool_calls: calls.map(({ name }) => name) })
    agent.recursion_depth = calls.length > 0 ? agent.recursion_depth + 1 : agent.recursion_depth
  }
  const summary = given ? { ...given } : undecided.length === 0 ? failedSummary(run) : undecidedSummary(undecided)
  return {
    summary: agentSummary.parse({
      agent_name: agentName,
      step_id: run.id,
      result: summary.result,
      short_summary: cut(summary.short_summary),
      key_decisions: cutList(summary.key_decisions),
      next_instructions_for_supervisor: cut(summary.next_instructions_for_supervisor),
    }),
    agent: agentState.parse({ ...agent, messages: newest(agent.messages), tool_events: newest(agent.tool_events) }),
  }
}

function failedSummary({
  status,
  pause_reason: reason,
  summary,
  error_message: error,
}: Pick<SpecialistRun, 'status' | 'pause_reason' | 'summary' | 'error_message'>): AgentSummaryDecision {
  const why = error ?? (reason === null ? `The run is ${status}.` : `The run stopped: ${reason}.`)
  return {
    result: 'FAILED',
    short_summary: summary === null || summary === '' ? why : `${why}\n\nIts last words: ${summary}`,
    key_decisions: [],
    next_instructions_for_supervisor: 'Try another way, or escalate.',
  }
}

/** The supervisor must not delegate this work again, because the call could be made twice. */
const undecidedSummary = (names: readonly string[]): AgentSummaryDecision => ({
  result: 'FAILED',
  short_summary: `Nobody knows whether these calls took effect: ${names.join(', ')}. They were cut off before they answered.`,
  key_decisions: [],
  next_instructions_for_supervisor:
    'People are asked whether these calls took effect. Do not have them made again; continue without them, or escalate.',
})

const asText = (value: unknown): string => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''))

const cut = (text: string): string => cutText(text, LONGEST_TEXT, ' [cut]')

function cutList(texts: readonly string[]): string[] {
  let room = LONGEST_TEXT
  const kept = texts.map(cut).filter((text) => {
    room -= text.length
    return room >= 0
  })
  const left = texts.length - kept.length
  return left === 0 ? kept : [...kept, `[${left} more]`]
}

function newest(items: readonly unknown[]): unknown[] {
  let room = MOST_KEPT
  const kept: unknown[] = []
  for (const item of items.toReversed()) {
    room -= JSON.stringify(item).length
    if (room < 0) break
    kept.unshift(item)
  }
  return kept
}
