// The execution of a run by its owner: its row as claimed, its definitions, its state, and its journal.

import type { LanguageModelV4FunctionTool, LanguageModelV4Message } from '@ai-sdk/provider'
import type { Db, Pool } from '../db/pool.ts'
import type { ClaimedRun } from '../journal/claim.ts'
import type { Append } from '../journal/entries.ts'
import type { Appended, Journal, OpenAppend } from '../journal/journal.ts'
import type { OutageWatch } from '../journal/outage-watch.ts'
import type { AdmittedCall, ProjectCalls } from '../journal/project-calls.ts'
import type { CrossedMark } from '../journal/reserve.ts'
import type { RunChange } from '../journal/run-change.ts'
import type { Agent, ModelChoice } from '../kernel/agent.ts'
import type { DecisionName } from '../kernel/decision.ts'
import { defined } from '../kernel/defined.ts'
import type { Log } from '../kernel/log.ts'
import type { Middleware } from '../kernel/middleware.ts'
import type { Model } from '../kernel/model-call.ts'
import type { Settings } from '../kernel/project.ts'
import type { Rights } from '../kernel/rights.ts'
import type { StepUsage } from '../kernel/run.ts'
import type { OpeningStep, RunEvent } from '../kernel/run-event.ts'
import type { Tool, WriteCall, WriteResult } from '../kernel/tool.ts'
import type { LibraryPrompt } from '../prompts/library.ts'
import type { RunControl } from './run-control.ts'
import { applyEvent, type RunState } from './run-state.ts'

/** The dependencies of runs on the rest of the system; wired in bin/. */
export interface RunDeps {
  pool: Pool
  journal: Journal
  log: Log
  /** Returns null if there is no such provider. */
  resolveModel: (choice: ModelChoice) => Promise<Model | null>
  /** The tools with these names, and the names without a tool. */
  resolveTools: (projectId: string, names: readonly string[]) => Promise<{ tools: Tool[]; missing: string[] }>
  /** The prompt behind a prompt_id. Throws PROMPT_MISSING, or UNAVAILABLE if the library of another process is away. */
  resolvePrompt: (
    projectId: string,
    promptId: string,
    /** Without a variant that of this process is used. */
    variantId?: string,
  ) => Promise<LibraryPrompt & { variantId: string }>
  isHalted: (projectId: string) => boolean
  /** Tells whether the project limits its month, as far as this process has heard. */
  isMonthLimited: (projectId: string) => boolean
  /** Asks the database which projects are halted: newer than `isHalted`. */
  refreshHalted: () => Promise<void>
  onText: (runId: string, step: number, offset: number, text: string) => void
  /** Called when runs became ready in the database, or will be ready after this time: a process may take them. */
  onReady: (inMs?: number) => void
  onTasks?: (projectId: string) => void
  /** Called when the run's agent was refused something, and the refusal is committed. */
  onRefused?: (run: ClaimedRun, refused: NonNullable<WriteResult['refused']>) => void
  /** The wait before the first retry of a model call; each further one waits twice as long. */
  firstBackoffMs?: number
  askHuman: AskHuman
  /** Carries out a tool that changes Muster's own tables, within the transaction that journals the call. */
  write: WriteCallTool
  /** The names of the tools that every agent with subordinates has. */
  seniorTools?: readonly string[]
  /** Called in the transaction that notes how much of its allocation an agent has used. */
  onMarks?: (tx: Db, agentId: string, marks: readonly CrossedMark[]) => Promise<void>
  /** The decisions with which the run of a task begins; absent if this process does not work on tasks. */
  opening?: Opening
  calls: ProjectCalls
  /** True if runs go to processes that have their tools: a run whose tool is not here is given back. */
  isRouted: boolean
  outages: OutageWatch
  middleware?: readonly Middleware[]
  /** Executes the run of a supervisor; absent if there is no supervisor system. Resolves when the run is left. */
  supervise?: (owned: OwnedRun) => Promise<void>
  /** Executes the run of an agent that is a flow; absent if there are no flows. Resolves when the run is left. */
  runFlow?: (owned: OwnedRun) => Promise<void>
}

/** A decision that the run of a task asks for before its work. */
export interface OpeningQuestion {
  name: DecisionName
  text: string
  /** The first task of the piece of work, for the log. */
  rootTaskId: string
}

export interface Opening {
  /** The next question, or null if the work itself begins. */
  ask(run: ClaimedRun, agent: Agent, last: RunState['opening']): Promise<OpeningQuestion | null>
  /** Acts on an answer, in the transaction that journals it. With `next: 'done'` the note is the run's summary. */
  decide(reply: OpeningReply): Promise<{ step: OpeningStep; appended: Appended }>
}

export interface OpeningReply {
  run: ClaimedRun
  question: OpeningQuestion
  answer: string
  /** The number of answers to this question that did not fit. */
  misfits: number
  /** The part of the journal that records the decision. */
  entryFor(step: OpeningStep): Append
}

export type WriteCallTool = (tx: Db, call: WriteCall) => Promise<WriteResult>

/** Makes the task that asks people, once per id, and reads the answer if there is one. */
export interface AskHuman {
  ask(question: { taskId: string; projectId: string; runId: string; agentId: string; question: string }): Promise<void>
  answers(taskIds: readonly string[]): Promise<Map<string, { answer: unknown; isRefused: boolean }>>
}

export interface Definition {
  agent: Agent
  settings: Settings
}

export interface OwnedRun {
  run: ClaimedRun
  agent: Agent
  settings: Settings
  state: RunState
  control: RunControl
  deps: RunDeps
  model: Model
  stage: StageTools
  /** The system part of the prompt; empty until the prompt was read. */
  prompt: string
  /** The rights of this run: its agent's rights within those of the run that started it. */
  rights: Rights
  claimedAtMs: number
  /** The tokens that are reserved of the agent's allocation for the call under way. */
  reserved: number
  /** The model of the last call of this owner. */
  called?: { provider: string; name: string }
  /** The call under way of a run without an agent, as admitted by the project's month. */
  call: AdmittedCall | null
  /** The question that is asked instead of the next step of the work. */
  question: Question | null
  /**
   * Set if the run waited for its provider and has made no call since. turn: it was let go, or its own wait is over ·
   * early: something else woke it.
   */
  woken: 'turn' | 'early' | null
}

/** A question that a step asks apart from the history of the work, and without tools. */
export interface Question {
  /** The decision that is asked for; null if the answer is a text. */
  name: DecisionName | null
  prompt: LanguageModelV4Message[]
  /** Commits the answer with its step; `stepDone` makes the event. A cut-off answer is empty. */
  commit(answer: string, stepDone: (purpose: StepPurpose) => RunEvent, change: RunChange): Promise<'again' | 'left'>
}

export type StepPurpose = Pick<Extract<RunEvent, { kind: 'step.completed' }>['data'], 'decision' | 'node' | 'summary'>

export interface StageTools {
  index: number
  byName: ReadonlyMap<string, Tool>
  faces: readonly LanguageModelV4FunctionTool[]
}

/** Another process owns the run now, or the run is gone: this process must not touch it any more. */
export class RunLost extends Error {}

/** Commits the events, then applies them to the state of the run. */
export async function append(owned: OwnedRun, events: readonly RunEvent[], change?: RunChange): Promise<void> {
  apply(owned, events, await owned.deps.journal.append(entryOf(owned, events, change)))
}

/** Commits the writes of `work` together with the events that it returns: all or nothing. */
export async function appendWritten(
  owned: OwnedRun,
  work: (tx: Db) => Promise<{ events: readonly RunEvent[]; change?: RunChange }>,
): Promise<void> {
  const { journal, pool } = owned.deps
  let written: readonly RunEvent[] = []
  const appended = await journal.appendAfter(pool, async (tx) => {
    const { events, change } = await work(tx)
    written = events
    return entryOf(owned, events, change)
  })
  apply(owned, written, appended)
}

class NotTrue extends Error {}

/** Commits the events only if `isTrue` holds within the same transaction. Returns whether it did. */
export async function appendWhere(
  owned: OwnedRun,
  isTrue: (tx: Db) => Promise<boolean>,
  events: readonly RunEvent[],
  change: RunChange,
): Promise<boolean> {
  const { journal, pool } = owned.deps
  try {
    const appended = await journal.appendAfter(pool, async (tx) => {
      if (!(await isTrue(tx))) throw new NotTrue()
      return entryOf(owned, events, change)
    })
    apply(owned, events, appended)
    return true
  } catch (error) {
    if (error instanceof NotTrue) return false
    throw error
  }
}

export interface OpenCommit extends Pick<OpenAppend, 'taken' | 'join'> {
  /** Resolves when everything is committed and applied to the state of the run, with the events that `joined`. */
  done(joined: readonly RunEvent[]): Promise<void>
}

/** Works like `append`, and more events may join until the commit is under way. */
export function openAppend(owned: OwnedRun, events: readonly RunEvent[], change: RunChange): OpenCommit {
  const { appended, taken, join } = owned.deps.journal.appendOpen(entryOf(owned, events, change))
  // A failure reaches the caller of `done`; until then nobody may be waiting for it.
  appended.catch(() => {})
  return { taken, join, done: async (joined) => apply(owned, [...events, ...joined], await appended) }
}

export function entryOf(owned: OwnedRun, events: readonly RunEvent[], change: RunChange | undefined): Append {
  const { id: runId, fence, ancestors } = owned.run
  return { runId, fence, events, ancestors, ...(change ? { change: withModel(owned, change) } : {}) }
}

/** The model is noted by a change that sets columns anyway; most steps need the cheaper statement that only counts. */
function withModel({ called }: OwnedRun, change: RunChange): RunChange {
  return called && change.set ? withChange(change, { model: called }) : change
}

export function apply({ state }: OwnedRun, events: readonly RunEvent[], answer: Appended): void {
  if (answer.status !== 'written') throw new RunLost(answer.status)
  // The time is the database's, by which the waits of a run are measured.
  for (const event of events) applyEvent(state, event, answer.at.getTime())
}

/** The time since the run was started, without the time it waited for people. */
export const elapsedMs = ({ run, state, claimedAtMs }: OwnedRun): number =>
  run.age - state.pausedMs + performance.now() - claimedAtMs

/** The time now in milliseconds, by the database's clock. */
export const databaseNow = ({ run, claimedAtMs }: OwnedRun): number => run.claimed_at + performance.now() - claimedAtMs

/** The time until the run's deadline, or until the grace after it is over; null if the run has no deadline. */
export function remainingMs(owned: OwnedRun, graceMs = 0): number | null {
  const { timeout } = owned.run
  return timeout === null ? null : timeout + graceMs - elapsedMs(owned)
}

/** The model that the calls of a run are made to. */
export const chosenModel = ({ agent, settings }: Definition): ModelChoice =>
  agent.model ?? { ...settings.default_model, max_output_tokens: 4_096 }

/** The change of the row after a model call: tokens are added, a reservation is given back. */
export function spend(owned: OwnedRun, usage: StepUsage): RunChange {
  const settled = owned.reserved
  owned.reserved = 0
  const { provider, name } = chosenModel(owned)
  owned.called = { provider, name }
  return defined({
    inputTokens: usage.input_tokens,
    outputTokens: usage.output_tokens,
    costUsd: usage.cost_usd ?? undefined,
    settled: settled > 0 ? settled : undefined,
    set: usage.estimated ? ({ usage_estimated: true } as const) : undefined,
  })
}

export const withChange = (change: RunChange, set: RunChange['set']): RunChange => ({
  ...change,
  set: { ...change.set, ...set },
})
