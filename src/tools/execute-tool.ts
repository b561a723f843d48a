// A tool is called (a function of ours, of an app module, of an MCP server) or carried out by the run itself
// (run-tools.ts). A called tool may throw, hang or answer with a gigabyte: `executeTool` returns each of these as data.
// The registry finds tools by name; mcp.ts brings those of MCP servers.
import { type CallTool, OutcomeUnknown, type ToolContext } from '../kernel/tool.ts'
import { cutToBytes, type JsonResult, toJsonResult } from './json-result.ts'

export interface ToolOutcome {
  /** JSON; with `isError` it is `{error: sentence}`. */
  result: unknown
  isError: boolean
  /** lost: the tool says that its request was sent, and that no answer came. */
  cause: 'ok' | 'error' | 'timeout' | 'aborted' | 'lost'
  /** The size of the result before it was cut or refused. */
  rawBytes?: number
}

export interface ToolLimits {
  timeoutMs: number
  outputLimitBytes: number
  /** The time that a tool has to end after its signal fired, before it is abandoned. Read when the signal fires. */
  drainMs?: () => number
  /** Is given the clock of the call, which can be stopped for a while. */
  onClock?: (clock: CallClock) => void
}

export interface CallClock {
  /** The time of a `wait` does not count for the timeout. */
  standStill<Value>(wait: () => Promise<Value>): Promise<Value>
}

/** Never throws. A result that arrives while the tool drains still counts: its effect is known. */
export async function executeTool(
  tool: CallTool,
  args: unknown,
  context: ToolContext,
  limits: ToolLimits,
): Promise<ToolOutcome> {
  if (context.signal.aborted) return stopped(tool, 'aborted', limits)
  const stop = new AbortController()
  const call = { cause: null as StopCause | null, isOver: false }
  const abandoned = Promise.withResolvers<'abandoned'>()
  let drainTimer: NodeJS.Timeout | undefined
  const halt = (cause: StopCause): void => {
    if (call.cause !== null) return
    call.cause = cause
    stop.abort(new DOMException(`The tool was stopped: ${cause}.`, cause === 'timeout' ? 'TimeoutError' : 'AbortError'))
    drainTimer = setTimeout(() => abandoned.resolve('abandoned'), limits.drainMs?.() ?? 0)
  }
  const onAbort = (): void => halt('aborted')
  context.signal.addEventListener('abort', onAbort, { once: true })
  const timer = createTimer(limits.timeoutMs, () => halt('timeout'))
  limits.onClock?.(timer)

  const own: ToolContext = {
    ...context,
    signal: stop.signal,
    // Progress of an abandoned tool belongs to no call.
    emit: (progress) => {
      if (!call.isOver) context.emit(progress)
    },
  }
  try {
    const settled = await Promise.race([settle(tool, args, own), abandoned.promise])
    if (settled === 'abandoned' || ('thrown' in settled && call.cause !== null)) {
      return stopped(tool, call.cause ?? 'aborted', limits)
    }
    if ('thrown' in settled) {
      const cause = settled.thrown instanceof OutcomeUnknown ? 'lost' : 'error'
      return { ...failed(messageOf(settled.thrown), limits), cause }
    }
    return answered(tool, toJsonResult(settled.value, limits.outputLimitBytes), limits)
  } finally {
    call.isOver = true
    timer.end()
    clearTimeout(drainTimer)
    context.signal.removeEventListener('abort', onAbort)
  }
}

function createTimer(timeoutMs: number, onTimeout: () => void): CallClock & { end(): void } {
  let leftMs = timeoutMs
  let since = performance.now()
  let waits = 0
  let isOver = false
  let timer = setTimeout(onTimeout, leftMs)
  return {
    standStill: async (wait) => {
      if (waits++ === 0) {
        clearTimeout(timer)
        leftMs -= performance.now() - since
      }
      try {
        return await wait()
      } finally {
        if (--waits === 0 && !isOver) {
          since = performance.now()
          timer = setTimeout(onTimeout, Math.max(0, leftMs))
        }
      }
    },
    end: () => {
      isOver = true
      clearTimeout(timer)
    },
  }
}

const MAY_HAVE_ACTED = ' It may have taken effect all the same: check before you call it again.'

type StopCause = 'timeout' | 'aborted'
type Settled = { value: unknown } | { thrown: unknown }

/** Never rejects, so a tool that fails after it was abandoned is no unhandled rejection. */
async function settle(tool: CallTool, args: unknown, context: ToolContext): Promise<Settled> {
  try {
    return { value: await tool.execute(args, context) }
  } catch (thrown) {
    return { thrown }
  }
}

function answered(tool: CallTool, json: JsonResult, limits: ToolLimits): ToolOutcome {
  const measured = json.rawBytes === undefined ? {} : { rawBytes: json.rawBytes }
  if (json.ok) return { result: json.value, isError: false, cause: 'ok', ...measured }
  return { ...failed(`The result of the tool "${tool.name}" ${json.reason}.`, limits), ...measured }
}

function stopped(tool: CallTool, cause: StopCause, limits: ToolLimits): ToolOutcome {
  const sentence =
    cause === 'timeout'
      ? `The tool "${tool.name}" did not answer within ${limits.timeoutMs} ms and was given up.`
      : `The tool "${tool.name}" was given up before it answered.`
  return { ...failed(`${sentence}${tool.effect === 'readonly' ? '' : MAY_HAVE_ACTED}`, limits), cause }
}

function failed(message: string, limits: ToolLimits): ToolOutcome {
  const cut = cutToBytes(message, limits.outputLimitBytes)
  return {
    result: { error: cut.text },
    isError: true,
    cause: 'error',
    ...(cut.rawBytes === undefined ? {} : { rawBytes: cut.rawBytes }),
  }
}

/** Turns any thrown value into a sentence for the model. `before` begins the sentence if the value is not a text. */
export function messageOf(thrown: unknown, before = 'The tool failed with '): string {
  try {
    if (thrown instanceof Error) return thrown.message || thrown.name
    if (typeof thrown === 'string' && thrown !== '') return thrown
    return `${before}${JSON.stringify(thrown) ?? String(thrown)}.`
  } catch {
    return `${before}a value that cannot be shown.`
  }
}
