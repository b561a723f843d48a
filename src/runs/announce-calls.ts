// If middleware has a beforeTool, a step's calls are announced one by one, once every beforeTool let them pass.
import type { RunEvent } from '../kernel/run-event.ts'
import { atOnce } from './at-once.ts'
import { announcement, withKeys } from './judge-calls.ts'
import { afterTool, beforeTool, hookError, type Passed, type ToolResult } from './middleware.ts'
import { append, type OwnedRun, remainingMs } from './owned-run.ts'
import type { CallSignal } from './run-control.ts'
import type { AskedCall } from './run-state.ts'
import { changesNothing, commitWithCalls } from './settle-calls.ts'
import { timedOut, toEvent, toolGone } from './tool-result.ts'

export async function announceCalls(owned: OwnedRun): Promise<void> {
  const { control, state } = owned
  const signal = control.signalFor(remainingMs(owned), 'model')
  const calls = [...state.asked.values()]
  const decided: RunEvent[][] = []
  await atOnce(calls, async (call, index) => {
    decided[index] = await decide(owned, call, signal)
  })
  signal.end()
  const events = withKeys(owned, decided.flat())
  if (events.length === 0) return
  if (changesNothing(events)) await commitWithCalls(owned, events, {})
  else await append(owned, events)
}

/** If the run is about to stop, nothing is decided; the next owner asks the middleware again. */
async function decide(owned: OwnedRun, asked: AskedCall, signal: CallSignal): Promise<RunEvent[]> {
  const tool = owned.stage.byName.get(asked.name)
  if (!tool) return [toolGone(asked)]
  const parsed = tool.parse(asked.args)
  if (!parsed.ok) return [toEvent(asked, { error: parsed.message }, true)]
  const call = { ...asked, args: parsed.args }
  // The exit of a loop is no call of a tool, so the middleware has no say in it.
  if (tool.kind === 'finish_loop')
    return [announcement(owned, { ...call, given: asked.args, tool, text: owned.state.text })]
  const startedAt = Date.now()
  const passed = await answerOf(owned, call, signal.signal)
  switch (passed.kind) {
    case 'aborted':
      return signal.cause() === 'deadline' ? [timedOut(call, startedAt)] : []
    case 'failed':
      return [toEvent(call, hookError(passed.message), true, startedAt)]
    case 'passed':
      if (!passed.value) return [announcement(owned, { ...call, given: asked.args, tool, text: owned.state.text })]
      return [toEvent(call, passed.value.result, passed.value.isError, startedAt)]
  }
}

/** A result that beforeTool returns is shown to afterTool, too. */
async function answerOf(owned: OwnedRun, call: AskedCall, signal: AbortSignal): Promise<Passed<ToolResult | null>> {
  const passed = await beforeTool(owned, call, signal)
  return passed.kind === 'passed' && passed.value ? afterTool(owned, call, passed.value, signal) : passed
}
