// A run in the hands of its owner: its row as claimed, its definitions, its state, and its journal.
import type { LanguageModelV4FunctionTool, LanguageModelV4Message } from '@ai-sdk/provider'
import type { Db, Pool } from '../db/pool.ts'
import type { Appended, Journal, OpenAppend } from '../journal/append.ts'
import type { ClaimedRun } from '../journal/claim.ts'
import type { Append } from '../journal/entries.ts'
import type { AdmittedCall, ProjectCalls } from '../journal/project-calls.ts'
import type { CrossedMark } from '../journal/reserve.ts'
import type { RunChange } from '../journal/run-change.ts'
import type { Agent, ModelChoice } from '../kernel/agent.ts'
import type { DecisionName } from '../kernel/decision.ts'
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
  /** Null: there is no such provider. */
  resolveModel: (choice: ModelChoice) => Promise<Model | null>
  /** The tools by these names, and the names that nothing answers to. */
  resolveTools: (projectId: string, names: readonly string[]) => Promise<{ tools: Tool[]; missing: string[] }>
  /** The prompt behind a prompt_id. Throws PROMPT_MISSING, or UNAVAILABLE where the library is elsewhere and away. */
  resolvePrompt: (
    projectId: string,
    promptId: string,
    /** The variant of this process where absent. */
    variantId?: string,
  ) => Promise<LibraryPrompt & { variantId: string }>
  isHalted: (projectId: string) => boolean
  /** Tells whether the project limits its month, as far as this process has heard. */
  isMonthLimited: (projectId: string) => boolean
  /** Asks the database which projects are halted: its answer is newer than that of `isHalted`. */
  refreshHalted: () => Promise<void>
  /** Text of the step under way, as it arrives. */
  onText: (runId: string, step: number, offset: number, text: string) => void
  /** Runs became ready in the database, or will be after so long: somebody may take them. */
  onReady: (inMs?: number) => void
  /** Agents of the project were given tasks. */
  onTasks?: (projectId: string) => void
  /** The run's agent was refused something, and the refusal is committed. */
  onRefused?: (run: ClaimedRun, refused: NonNullable<WriteResult['refused']>) => void
  /** The wait before the first retry of a model call; each further one waits twice as long. */
  firstBackoffMs?: number
  askHuman: AskHuman
  /** Carries out a tool that changes our own tables, within the transaction that journals it. */
  write: WriteCallTool
  /** The names of the tools that every agent with subordinates has. */
  seniorTools?: readonly string[]
  /** Called in the transaction that notes how much of its allocation an agent has used. */
  onMarks?: (tx: Db, agentId: string, marks: readonly CrossedMark[]) => Promise<void>
  /** The decisions with which the run of a task begins; absent where tasks are not worked on. */
  opening?: Opening
  /** Model calls that no agent makes, within the month of their project. */
  calls: ProjectCalls
  /** The middleware of the app module, in its order. */
  middleware?: readonly Middleware[]
  /** Executes the run of a supervisor; absent where there is no supervisor system. Resolves when the run is left. */
  supervise?: (session: Session) => Promise<void>
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

/** An answer to a question. */
export interface OpeningReply {
  run: ClaimedRun
  question: OpeningQuestion
  answer: string
  /** The answers to this question that did not fit. */
  misfits: number
  /** The part of the journal that says what was decided. */
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

export interface Session {
  run: ClaimedRun
  agent: Agent
  settings: Settings
  state: RunState
  control: RunControl
  deps: RunDeps
  model: Model
  stage: StageTools
  /** The system part of the prompt; empty while the library was not asked for it. */
  prompt: string
  /** The rights of this run: its agent's rights within those of the run that started it. */
  rights: Rights
  claimedAtMs: number
  /** The tokens that are reserved of the agent's allocation for the call under way. */
  reserved: number
  /** The call under way of a run without an agent, as its project's month has admitted it. */
  call: AdmittedCall | null
  /** The question that is asked in place of the next step of the work. */
  question: Question | null
}

/** A question that a step asks apart from the history of the work, and without tools. */
export interface Question {
  /** The decision that is asked for; null where the answer is a text. */
  name: DecisionName | null
  prompt: LanguageModelV4Message[]
  /**
   * Commits the answer with the step that brought it. `stepDone` makes the step's event, with what it was for. An answer
   * that was cut off, or that calls tools, is empty.
   */
  commit(answer: string, stepDone: (purpose: StepPurpose) => RunEvent, change: RunChange): Promise<'again' | 'left'>
}

export type StepPurpose = Pick<Extract<RunEvent, { kind: 'step.completed' }>['data'], 'decision' | 'node' | 'summary'>

/** The tools of the current stage of the pipeline. */
export interface StageTools {
  index: number
  byName: ReadonlyMap<string, Tool>
  faces: readonly LanguageModelV4FunctionTool[]
}

/** Somebody else owns the run now, or it is gone: this process must not touch it any more. */
export class RunLost extends Error {}

/** Commits the events, then applies them to the state of the run. */
export async function append(session: Session, events: readonly RunEvent[], change?: RunChange): Promise<void> {
  apply(session, events, await session.deps.journal.append(entryOf(session, events, change)))
}

/** Commits the writes of `work` together with the events that it answers: all or nothing. */
export async function appendWritten(
  session: Session,
  work: (tx: Db) => Promise<{ events: readonly RunEvent[]; change?: RunChange }>,
): Promise<void> {
  const { journal, pool } = session.deps
  let written: readonly RunEvent[] = []
  const appended = await journal.appendAfter(pool, async (tx) => {
    const { events, change } = await work(tx)
    written = events
    return entryOf(session, events, change)
  })
  apply(session, written, appended)
}

/** Thrown to roll a transaction back. */
class NotTrue extends Error {}

/** Commits the events only if `isTrue` holds within the same transaction. Answers whether it did. */
export async function appendWhere(
  session: Session,
  isTrue: (tx: Db) => Promise<boolean>,
  events: readonly RunEvent[],
  change: RunChange,
): Promise<boolean> {
  const { journal, pool } = session.deps
  try {
    const appended = await journal.appendAfter(pool, async (tx) => {
      if (!(await isTrue(tx))) throw new NotTrue()
      return entryOf(session, events, change)
    })
    apply(session, events, appended)
    return true
  } catch (error) {
    if (error instanceof NotTrue) return false
    throw error
  }
}

export interface OpenCommit extends Pick<OpenAppend, 'taken' | 'join'> {
  /** When everything is committed, the events and those that `joined` them are applied to the state of the run. */
  done(joined: readonly RunEvent[]): Promise<void>
}

/** As `append`, and more events may join until the commit is under way. */
export function openAppend(session: Session, events: readonly RunEvent[], change: RunChange): OpenCommit {
  const { appended, taken, join } = session.deps.journal.appendOpen(entryOf(session, events, change))
  // A failure reaches the caller of `done`; until then nobody may be waiting for it.
  appended.catch(() => {})
  return { taken, join, done: async (joined) => apply(session, [...events, ...joined], await appended) }
}

export function entryOf({ run }: Session, events: readonly RunEvent[], change: RunChange | undefined): Append {
  const { id: runId, fence, ancestors } = run
  return { runId, fence, events, ancestors, ...(change ? { change } : {}) }
}

export function apply({ state }: Session, events: readonly RunEvent[], answer: Appended): void {
  if (answer.status !== 'written') throw new RunLost(answer.status)
  // The database's clock, by which the waits of a run are measured.
  for (const event of events) applyEvent(state, event, answer.at.getTime())
}

/** The time since the run was started, without the time it waited for people. */
export const elapsedMs = ({ run, state, claimedAtMs }: Session): number =>
  run.age - state.pausedMs + performance.now() - claimedAtMs

/** The time until the run's deadline, or until the grace after it is over; null where the run has none. */
export function remainingMs(session: Session, graceMs = 0): number | null {
  const { timeout } = session.run
  return timeout === null ? null : timeout + graceMs - elapsedMs(session)
}

/** The change of the row after a model call: tokens are added, a reservation is given back. */
export function spend(session: Session, usage: StepUsage): RunChange {
  const settled = session.reserved
  session.reserved = 0
  return {
    inputTokens: usage.input_tokens,
    outputTokens: usage.output_tokens,
    ...(usage.cost_usd === null ? {} : { costUsd: usage.cost_usd }),
    ...(settled > 0 ? { settled } : {}),
    ...(usage.estimated ? { set: { usage_estimated: true } } : {}),
  }
}

export const withChange = (change: RunChange, set: RunChange['set']): RunChange => ({
  ...change,
  set: { ...change.set, ...set },
})
