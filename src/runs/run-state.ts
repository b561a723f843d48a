// The state of a run, from its journal. The owner applies each event after its commit; the next owner applies them all
// with the same function, so that a recovered run has the same state.
import type { LanguageModelV4Message, LanguageModelV4ToolResultPart } from '@ai-sdk/provider'
import { type CallCounts, countCall, identityOf, uncountCall } from '../kernel/call-key.ts'
import { CONTINUE } from '../kernel/continue-phrase.ts'
import { type DoomLoopCount, noCallsYet } from '../kernel/doom-loop.ts'
import type { OpeningStep, RunEvent } from '../kernel/run-event.ts'
import { assistantMessage, resultPart, userMessage } from './messages.ts'
import { forgetTries, type ModelTries, noTries, noteFailedTry, noteProviderWait } from './model-tries.ts'
import { doubtCalls, noteDecision, noteWritten, type PendingCall, pendingCall } from './pending-call.ts'
import { taskTexts } from './prompt-parts.ts'

/** A call that the last step asked for, and that is not decided yet. */
export interface AskedCall {
  id: string
  name: string
  args: unknown
  step: number
  /** The place of the call among the calls of the step. */
  index: number
}

export type ReadPrompt = Extract<RunEvent, { kind: 'prompt.read' }>['data']

export interface RunState extends ModelTries {
  /** The first message is the system message, which each call sets anew. */
  messages: LanguageModelV4Message[]
  /** The number of model calls so far, including those of the runs that this one continues. */
  steps: number
  ownSteps: number
  /** The step of a sequential agent, or the iteration of a loop. */
  stage: number
  pending: Map<string, PendingCall>
  /** Calls that are neither announced nor answered: middleware has not seen them yet. */
  asked: Map<string, AskedCall>
  doomLoop: DoomLoopCount
  /** The calls announced so far, from which the keys of the next ones follow. */
  callCounts: CallCounts
  /** The newest text that a step produced, finished or not. */
  text: string
  woundDown: 'step_limit' | 'timeout' | null
  /** True if a model call may have been under way when its owner died. */
  mayHaveLostCall: boolean
  isCompacted: boolean
  /** True if the provider refused the last request as too long. */
  isTooLong: boolean
  /** The provider's count for the messages so far; later messages are estimated. */
  countedTokens: number
  uncountedFrom: number
  /** The time in waits, of this run and of all runs below it, which counts for no timeout. */
  pausedMs: number
  /** The instant since which the run waits for runs below it, as far as that wait is not yet counted. */
  parkedAt: number | null
  pausedAt: number | null
  hasStarted: boolean
  /** The input of the run, while it is not yet shown to the model. */
  heldInput: string | null
  /** The input with which the history began: that of this run, or of the first run that it continues. */
  task: string
  /** The number of messages that show the task; these messages come first. */
  taskMessages: number
  /** True if no work was done on the task, so that a prompt of the library may still decide how the task is shown. */
  isUntouched: boolean
  /** The prompt that this run has read from the library. */
  prompt: ReadPrompt | null
  /** The last decision before the work, and the number of its answers in a row that did not fit. */
  opening: (OpeningStep & { misfits: number }) | null
  /** True if a step of the work itself was completed. */
  hasWorked: boolean
  /** The flow run that this run, or one that it continues, has started. */
  flowRunId: string | null
  /** True if the last step of the work called no tools: a specialist gives its summary next. */
  isWorkDone: boolean
  /** The problems of the summaries that did not fit. */
  summaryProblems: string[]
  /** The steps in a row, up to the last, that called tools. */
  toolRounds: number
  /** The answers that the nodes of a supervisor's graph were given, by their questions. */
  nodeAnswers: Map<string, string>
  /** People's answers to a supervisor's escalations, and the words with which they let it go on; oldest first. */
  personAnswers: PersonAnswer[]
}

export function newState(): RunState {
  return {
    messages: [{ role: 'system', content: '' }],
    steps: 0,
    ownSteps: 0,
    stage: 0,
    pending: new Map(),
    asked: new Map(),
    doomLoop: noCallsYet,
    callCounts: new Map(),
    text: '',
    woundDown: null,
    ...noTries(),
    mayHaveLostCall: false,
    isCompacted: false,
    isTooLong: false,
    countedTokens: 0,
    uncountedFrom: 0,
    pausedMs: 0,
    parkedAt: null,
    pausedAt: null,
    hasStarted: false,
    heldInput: null,
    task: '',
    taskMessages: 1,
    isUntouched: false,
    prompt: null,
    opening: null,
    hasWorked: false,
    flowRunId: null,
    isWorkDone: false,
    summaryProblems: [],
    toolRounds: 0,
    nodeAnswers: new Map(),
    personAnswers: [],
  }
}

/** `at` in milliseconds. */
export function applyEvent(state: RunState, event: RunEvent, at: number): void {
  switch (event.kind) {
    case 'run.started':
      beginRun(state, event.data)
      return
    case 'prompt.read':
      showTask(state, event.data)
      return
    case 'step.completed':
      completeStep(state, event.data)
      return
    case 'step.restarted':
      restartStep(state, event.data, at)
      return
    case 'tool.started':
      state.asked.delete(event.data.call_id)
      state.pending.set(
        event.data.call_id,
        pendingCall(event.data, at, countCall(state.callCounts, identityOf(event.data))),
      )
      return
    case 'tool.cut_off': {
      const call = state.pending.get(event.data.call_id)
      if (call) Object.assign(call, { isUnknown: true, cutOff: event.data })
      return
    }
    case 'tool.decided':
      noteDecision(state.pending, event.data, at)
      return
    case 'tool.written':
      noteWritten(state.pending, event.data)
      return
    case 'tool.completed':
      state.asked.delete(event.data.call_id)
      forgetUnanswered(state, event.data)
      state.pending.delete(event.data.call_id)
      addResult(state, resultPart(event.data))
      if (state.heldInput !== null && !hasOpenCalls(state)) giveInput(state)
      return
    case 'stage.completed':
      state.stage = event.data.stage + 1
      beginStage(state, event.data)
      return
    case 'context.compacted':
      compact(state, event.data)
      return
    case 'run.recovered':
      doubtCalls(state.pending, [])
      state.mayHaveLostCall = state.hasStarted && !hasOpenCalls(state)
      return
    case 'flow.started':
      state.flowRunId = event.data.flow_run_id
      return
    case 'flow.ended':
      return
    case 'run.parked':
      if (event.data.not_begun) doubtCalls(state.pending, event.data.not_begun)
      if (event.data.waits_for === 'children') state.parkedAt = at
      return
    case 'run.stood_still':
      state.pausedMs += event.data.ms
      state.parkedAt = null
      return
    case 'run.paused':
      state.pausedAt = at
      state.parkedAt = null
      noteProviderWait(state, event.data, at)
      if (event.data.not_begun) doubtCalls(state.pending, event.data.not_begun)
      return
    case 'run.continued':
      if (state.pausedAt !== null) state.pausedMs += at - state.pausedAt
      state.pausedAt = null
      return
    case 'supervisor.answered':
      state.personAnswers.push(personAnswer(state, event.data))
      // A run that people continue, because its model may be back, tries the model as often as at first.
      forgetTries(state)
      return
    case 'run.failed':
    case 'run.cancelled':
      // Matters to a run that continues this one: a call that had begun may have taken effect.
      doubtCalls(state.pending, event.data.not_begun ?? [])
      return
    case 'node.entered':
    case 'supervisor.updated':
    case 'run.completed':
    case 'run.cancel_requested':
    case 'tool.progress':
      return
    default:
      // A newer release wrote the event; this one does not know the kind and cannot act on it.
      event satisfies never
  }
}

/** The error of a call that was given up is no result of it: if the model makes the call again, it is the same call. */
function forgetUnanswered(state: RunState, data: Extract<RunEvent, { kind: 'tool.completed' }>['data']): void {
  const call = state.pending.get(data.call_id)
  const isMissing = data.is_unanswered ?? (data.blocked === 'timeout' && !data.is_withheld)
  if (!call || !isMissing) return
  uncountCall(state.callCounts, identityOf(call), call.occurrence)
}

/** True if the last step has calls without a result. */
const hasOpenCalls = ({ pending, asked }: RunState): boolean => pending.size + asked.size > 0

type StartedData = Extract<RunEvent, { kind: 'run.started' }>['data']

/** A run that continues another starts with the state of that run; its own limits count from here. */
function beginRun(state: RunState, { input, is_reset: isReset }: StartedData): void {
  state.hasStarted = true
  if (isReset) state.doomLoop = noCallsYet
  state.ownSteps = 0
  state.woundDown = null
  forgetTries(state)
  state.isTooLong = false
  state.mayHaveLostCall = false
  state.pausedMs = 0
  state.pausedAt = null
  state.parkedAt = null
  // A run that continues another may have no new input; a run that continues none was given null itself.
  const isSilent = input === null && state.messages.length > 1
  state.heldInput = isSilent ? null : typeof input === 'string' ? input : JSON.stringify(input)
  state.prompt = null
  if (state.messages.length === 1) {
    state.task = state.heldInput ?? ''
    state.isUntouched = true
  }
  if (!hasOpenCalls(state)) giveInput(state)
}

/** The input of a run comes after the results of the calls it inherited. */
function giveInput(state: RunState): void {
  if (state.heldInput !== null) state.messages.push(userMessage(state.heldInput))
  else if (state.messages.at(-1)?.role === 'assistant') state.messages.push(userMessage(CONTINUE))
  state.heldInput = null
}

/** The prompt's messages take the place of the bare task. A history that has gone on keeps its form. */
function showTask(state: RunState, prompt: ReadPrompt): void {
  state.prompt = prompt
  forgetTries(state)
  if (!state.isUntouched) return
  const shown = taskTexts(prompt, state.task).map((text) => userMessage(text))
  state.messages.splice(1, state.taskMessages, ...shown)
  state.taskMessages = shown.length
}

function completeStep(state: RunState, data: Extract<RunEvent, { kind: 'step.completed' }>['data']): void {
  state.steps = data.step
  state.ownSteps++
  forgetTries(state)
  state.mayHaveLostCall = false
  state.isCompacted = false
  state.isTooLong = false
  if (data.decision) {
    const misfits = data.decision.next === 'again' ? (state.opening?.misfits ?? 0) + 1 : 0
    state.opening = { ...data.decision, misfits }
    return
  }
  if (data.node) {
    state.nodeAnswers.set(data.node.key, data.text)
    return
  }
  if (data.summary) {
    if ('problem' in data.summary) state.summaryProblems.push(data.summary.problem)
    return
  }
  state.hasWorked = true
  state.isUntouched = false
  data.tool_calls.forEach(({ id, name, args }, index) => {
    state.asked.set(id, { id, name, args, step: data.step, index })
  })
  state.isWorkDone = data.tool_calls.length === 0
  state.toolRounds = data.tool_calls.length === 0 ? 0 : state.toolRounds + 1
  if (data.text !== '') state.text = data.text
  if (data.loop) state.doomLoop = data.loop
  if (data.wind_down) state.woundDown = data.wind_down
  const message = assistantMessage(data.text, data.tool_calls, data.reasoning ?? [])
  if (message) state.messages.push(message)
  state.countedTokens = data.usage.input_tokens + data.usage.output_tokens
  state.uncountedFrom = state.messages.length
}

function restartStep(state: RunState, data: Extract<RunEvent, { kind: 'step.restarted' }>['data'], at: number): void {
  state.mayHaveLostCall = false
  if (data.text) state.text = data.text
  if (data.reason === 'too_long') state.isTooLong = true
  if (data.reason !== 'failed') return
  noteFailedTry(state, data, at)
}

/** Results stand in the order of the calls, not of their ends, so that the same history makes the same prompt. */
function addResult(state: RunState, part: LanguageModelV4ToolResultPart): void {
  const last = state.messages.at(-1)
  if (last?.role !== 'tool') {
    state.messages.push({ role: 'tool', content: [part] })
    return
  }
  const asked = state.messages.at(-2)
  const order = asked?.role === 'assistant' ? asked.content.map((said) => idOfCall(said)) : []
  const place = order.indexOf(part.toolCallId)
  const later = last.content.findIndex((other) => order.indexOf(idOfCall(other)) > place)
  last.content.splice(later === -1 ? last.content.length : later, 0, part)
}

const idOfCall = (part: object): string | null => ('toolCallId' in part ? String(part.toolCallId) : null)

/** A sequential agent passes its output on; a loop goes on with its whole history. */
function beginStage(state: RunState, { output, stage, next }: StageEnd): void {
  if (next === 'history') {
    state.messages.push(userMessage(`Round ${stage + 2}. Go on, or call finish_loop when the work is done.`))
    return
  }
  state.messages = [{ role: 'system', content: '' }, userMessage(output)]
  state.taskMessages = 1
  resetCount(state)
}

type StageEnd = Extract<RunEvent, { kind: 'stage.completed' }>['data']

/** The task stays, the older messages become a summary, and the newest messages stay unchanged. */
function compact(state: RunState, { summary, keep }: { summary: string; keep: number }): void {
  const task = state.messages.slice(1, 1 + state.taskMessages)
  const newest = keep > 0 ? state.messages.slice(-keep) : []
  const note = `What happened so far, in short:\n${summary}`
  const begin = userMessage(...task.flatMap(textsOf), note)
  state.messages = [{ role: 'system', content: '' }, begin, ...newest]
  state.taskMessages = 1
  state.isUntouched = false
  state.isCompacted = true
  state.isTooLong = false
  forgetTries(state)
  resetCount(state)
}

function textsOf(message: LanguageModelV4Message): string[] {
  if (message.role !== 'user') return []
  return message.content.flatMap((part) => (part.type === 'text' ? [part.text] : []))
}

function resetCount(state: RunState): void {
  state.countedTokens = 0
  state.uncountedFrom = 0
}

interface PersonAnswer {
  answer: string
  /** Null if nobody was asked. */
  taskId: string | null
  /** The number of summaries from which rounds are counted. */
  summaries: number
  /** The number of used tokens from which the limit of tokens is counted. */
  tokens: number
}

/** A run that only goes on begins no new rounds. */
function personAnswer(
  { personAnswers }: RunState,
  { answer, task_id: taskId, summaries, tokens }: Extract<RunEvent, { kind: 'supervisor.answered' }>['data'],
): PersonAnswer {
  const before = personAnswers.at(-1) ?? { summaries: 0, tokens: 0 }
  return { answer, taskId, summaries: summaries ?? before.summaries, tokens: tokens ?? before.tokens }
}
