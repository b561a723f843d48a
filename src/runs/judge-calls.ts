import { callKey, countCall, identityOf, withoutControl } from '../kernel/call-key.ts'
import { countCalls, type DoomLoopCount, type DoomLoopVerdict } from '../kernel/doom-loop.ts'
import { isRecord } from '../kernel/is-record.ts'
import type { RequestedCall } from '../kernel/model-call.ts'
import { didYouMean } from '../kernel/nearest.ts'
import type { BlockedReason } from '../kernel/run.ts'
import type { RunEvent, StepCall } from '../kernel/run-event.ts'
import { JsonRefused, parseStrictJson } from '../kernel/strict-json.ts'
import type { Tool } from '../kernel/tool.ts'
import { type End, runCompleted, runFailed } from './end.ts'
import { approvalFor, isNamed } from './need-approval.ts'
import type { OwnedRun } from './owned-run.ts'

export type Announced = Extract<RunEvent, { kind: 'tool.started' }>

export interface JudgedCalls {
  calls: StepCall[]
  doomLoop: DoomLoopCount
  /** Announcements of the calls that will be made, and the results of those that will not. */
  events: RunEvent[]
  /** The calls end the run: a doom loop, or a loop's exit that has no call to wait for. */
  end: End | null
}

type Refusal = { message: string; blocked: BlockedReason | null }

/**
 * Decides about each call of a step. Calls of unknown tools or with misfit arguments are answered with their problem,
 * and count for the doom-loop guard.
 */
export function judgeCalls(
  owned: OwnedRun,
  requested: readonly RequestedCall[],
  {
    step,
    text,
    refuseAll,
    tools,
  }: { step: number; text: string; refuseAll: Refusal | null; tools: ReadonlyMap<string, Tool> },
): JudgedCalls {
  const { state, settings } = owned
  const { calls, problems } = uniqueCalls(requested, step)
  const names = [...tools.keys()]
  const parsedCalls = calls.map((call, index) => parseCall(tools.get(call.name), call, problems[index] ?? null, names))
  const counted = calls.map(({ name, args }, index) => {
    const tool = tools.get(name)
    const parsed = parsedCalls[index]
    const hasEffect = tool !== undefined && parsed?.refusal === null && hasEffectOf(tool, parsed.args, settings)
    return { name, args: comparedArgs(tool, args, parsed), isPoller: isPoller(tool), hasEffect }
  })
  const limits = { warn: settings.doom_loop_warn, stop: settings.doom_loop_stop }
  const { after, verdicts } = countCalls(state.doomLoop, counted, limits)
  const isStopped = verdicts.includes('stop') && !refuseAll
  const events: RunEvent[] = []
  let exit: LoopExit | null = null
  calls.forEach((call, index) => {
    const tool = tools.get(call.name)
    const parsed = parsedCalls[index] ?? { args: call.args, refusal: null }
    const refusal = refuseAll ?? doomLoopRefusal(verdicts[index], call.name) ?? parsed.refusal
    const isAfterExit = exit !== null
    if (!refusal && !exit && tool?.kind === 'finish_loop' && !isStopped) {
      exit = { result: resultOf(parsed.args), isLater: mustWait(owned, tool, events) }
    }
    const ends = exit !== null && !exit.isLater && tool?.kind === 'finish_loop'
    if (refusal || ends || isAfterExit || isStopped) {
      const why = refusal ?? (ends ? null : { message: exit?.isLater ? AFTER_EXIT : ENDED, blocked: null })
      events.push(settledCall(call, step, why))
    } else if (tool) {
      events.push(
        announcement(owned, {
          id: call.id,
          name: call.name,
          given: call.args,
          args: parsed.args,
          step,
          index,
          tool,
          text,
        }),
      )
    }
  })
  return {
    calls,
    doomLoop: after,
    events: withKeys(owned, events),
    end: isStopped ? doomLoopEnd(text, calls, verdicts) : endOf(text, exit),
  }
}

/** A call stays the same if only the agent's reason for it is another. */
function comparedArgs(
  tool: Tool | undefined,
  given: unknown,
  parsed: ReturnType<typeof parseCall> | undefined,
): unknown {
  if (tool === undefined || parsed === undefined || parsed.refusal !== null) return given
  return tool.kind === 'call' ? parsed.args : withoutControl(parsed.args)
}

const ENDED = 'The run ended before this call was made.'
const AFTER_EXIT = 'This call was not made: a call of finish_loop stands before it.'

interface LoopExit {
  result: unknown
  /** True if the run ends when the calls that stand before the exit are made, and the exit is approved where it must be. */
  isLater: boolean
}

const mustWait = ({ rights }: OwnedRun, tool: Tool, before: readonly RunEvent[]): boolean =>
  isNamed(rights, tool) || before.some(({ kind }) => kind === 'tool.started')

const endOf = (text: string, exit: LoopExit | null): End | null =>
  exit === null || exit.isLater ? null : exitOf(text, exit.result)

/** Providers repeat ids, or send none; in a run each id is used once. `problems` holds the problem with each text. */
function uniqueCalls(
  requested: readonly RequestedCall[],
  step: number,
): { calls: StepCall[]; problems: (string | null)[] } {
  const seen = new Set<string>()
  const problems: (string | null)[] = []
  const calls = requested.map(({ id, name, input, metadata }, index) => {
    const unique = id === '' || seen.has(id) ? `${id || 'call'}_${step}_${index + 1}` : id
    seen.add(unique)
    const { args, problem } = parseArguments(input)
    problems.push(problem)
    return { id: unique, name, args, ...(metadata ? { metadata } : {}) }
  })
  return { calls, problems }
}

/** Arguments pass the checks of a request's body. A text that is no JSON object is shown and never executed. */
export function parseArguments(input: string): { args: Record<string, unknown> | string; problem: string | null } {
  if (input.trim() === '') return { args: {}, problem: null }
  if (input.length > MOST_CHARACTERS) return { args: input, problem: 'The arguments are longer than 1 MiB.' }
  try {
    const args = parseStrictJson(input, 'The text of the arguments')
    return isRecord(args) ? { args, problem: null } : { args: input, problem: NO_OBJECT }
  } catch (error) {
    return {
      args: input,
      problem: error instanceof JsonRefused && !/valid JSON/.test(error.message) ? error.message : NO_OBJECT,
    }
  }
}

const MOST_CHARACTERS = 1_048_576
const NO_OBJECT = 'The arguments are no JSON object. Send them as one.'

function parseCall(
  tool: Tool | undefined,
  call: StepCall,
  problem: string | null,
  known: readonly string[],
): { args: unknown; refusal: Refusal | null } {
  const refuse = (message: string) => ({ args: call.args, refusal: { message, blocked: null } })
  if (!tool) {
    const offer = known.length > 0 ? `The tools are: ${known.join(', ')}.` : 'There are no tools.'
    return refuse(`There is no tool called "${call.name}".${didYouMean(call.name, known)} ${offer}`)
  }
  if (problem !== null) return refuse(problem)
  const parsed = tool.parse(call.args)
  return parsed.ok ? { args: parsed.args, refusal: null } : refuse(parsed.message)
}

const isPoller = (tool: Tool | undefined): boolean => tool?.kind === 'call' && tool.isPoller

/** The effect of a call, as it is journalled with its announcement. */
const effectOf = (tool: Tool, args: unknown, settings: OwnedRun['settings']): Announced['data']['effect'] =>
  tool.kind === 'call' ? (tool.effectOf?.(args, settings) ?? tool.effect) : 'run'

/** The exit of a loop changes nothing; every other call that is not readonly does. */
const hasEffectOf = (tool: Tool, args: unknown, settings: OwnedRun['settings']): boolean =>
  tool.kind !== 'finish_loop' && effectOf(tool, args, settings) !== 'readonly'

function doomLoopRefusal(verdict: DoomLoopVerdict | undefined, name: string): Refusal | null {
  if (verdict === 'surplus') {
    const message = `You asked for ${name} with exactly these arguments more than twice in one step. Two of these calls are enough; this one was not made.`
    return { message, blocked: 'doom_loop' }
  }
  if (verdict !== 'refuse' && verdict !== 'stop') return null
  const message =
    `You have called ${name} with exactly these arguments several times in a row. It was not called again: ` +
    'the result would be the same. Try a different approach.'
  return { message, blocked: 'doom_loop' }
}

function doomLoopEnd(text: string, calls: readonly StepCall[], verdicts: readonly string[]): End {
  const name = calls[verdicts.indexOf('stop')]?.name
  const message = `Stopped by the doom loop guard: ${name} was called with the same arguments again and again.`
  return runFailed('DOOM_LOOP', message, text || null)
}

export interface CallToAnnounce {
  id: string
  name: string
  /** The arguments as the model gave them, and as the tool gets them. */
  given: unknown
  args: unknown
  step: number
  index: number
  tool: Tool
  /** The text of the step. */
  text: string
}

export function announcement(
  { run, settings, rights }: Pick<OwnedRun, 'run' | 'settings' | 'rights'>,
  { id, name, given, args, step, index, tool, text }: CallToAnnounce,
): Announced {
  const effect = effectOf(tool, args, settings)
  const ref = `${run.id}:${step}:${index + 1}`
  const approval = approvalFor(rights, { tool, given, effect, text })
  return {
    kind: 'tool.started',
    data: { step, call_id: id, name, args, key: ref, ref, effect, ...(approval ? { approval } : {}) },
  }
}

/** The announced calls with their keys. A call's occurrence depends on those announced before it. */
export function withKeys<Event extends RunEvent>(
  { run, state }: Pick<OwnedRun, 'run' | 'state'>,
  events: readonly Event[],
): Event[] {
  const counts = new Map(state.callCounts)
  return events.map((event) => {
    if (event.kind !== 'tool.started') return event
    const identity = identityOf(event.data)
    const key = callKey(run.key_scope ?? run.id, identity, countCall(counts, identity))
    return { ...event, data: { ...event.data, key } }
  })
}

function settledCall({ id, name }: StepCall, step: number, refusal: Refusal | null): RunEvent {
  return {
    kind: 'tool.completed',
    data: {
      step,
      call_id: id,
      name,
      result: refusal ? { error: refusal.message } : { finished: true },
      is_error: refusal !== null,
      blocked: refusal?.blocked ?? null,
      started_at: new Date().toISOString(),
      duration: 0,
    },
  }
}

export function resultOf(args: unknown): unknown {
  return typeof args === 'object' && args !== null && 'result' in args ? args.result : undefined
}

/** The end of a loop that its agent left, with the result that it named, else with the last text. */
export function exitOf(text: string, result: unknown): End {
  if (result === undefined || result === null || result === '') return runCompleted(text)
  return runCompleted(typeof result === 'string' ? result : JSON.stringify(result))
}
