import { explainFailure } from '../db/failures.ts'
import { fault } from '../kernel/fault.ts'
import type { RunEvent } from '../kernel/run-event.ts'
import type { WriteResult } from '../kernel/tool.ts'
import { hasHook } from './middleware.ts'
import type { PendingCall } from './run-state.ts'
import { append, appendWritten, type Session } from './session.ts'
import { type OwnResult, showResults } from './show-results.ts'
import { toEvent } from './tool-result.ts'

/**
 * Calls that change Muster's own data, one after the other in the order the model asked for them. Each is committed
 * together with its result, so a crash leaves both or neither and the outcome is never unknown.
 */
export async function settleWrites(session: Session, calls: readonly PendingCall[]): Promise<void> {
  const { control, deps, run } = session
  for (const call of calls) {
    if (control.interruption() || control.isAskedToYield() || deps.isHalted(run.project_id)) return
    await fault('tool.before')
    if (!call.written) await write(session, call)
    // The write is committed with its result, before the middleware may take its time with that.
    if (call.written) await settle(session, { call, ...call.written })
  }
}

async function settle(session: Session, result: OwnResult): Promise<void> {
  const events = await showResults(session, [result])
  if (events.length > 0) await append(session, events)
}

async function write(session: Session, call: PendingCall): Promise<void> {
  const { run, deps, agent } = session
  const isShown = hasHook(session, 'afterTool')
  const startedAt = Date.now()
  let hasStarted = false
  let hasTasks = false
  let isBlocked = false
  let refused: WriteResult['refused']
  try {
    await appendWritten(session, async (tx) => {
      const written = await deps.write(tx, {
        name: call.name,
        args: call.args,
        key: call.key,
        projectId: run.project_id,
        runId: run.id,
        agentId: agent.id,
        hasAgent: run.agent_id !== null,
        bounds: run.rights,
        ancestors: run.ancestors,
        depth: run.chain_depth,
      })
      hasStarted = written.hasStarted
      hasTasks = written.hasTasks ?? false
      isBlocked = written.blocked === 'capability'
      refused = written.refused
      await fault('tool.after_effect_before_commit')
      const event = toEvent(call, written.result, written.isError, startedAt, written.blocked)
      return { events: [isShown ? writtenEvent(event) : event] }
    })
  } catch (error) {
    // The model mends a text that no column takes (NUL, half a surrogate pair); everything else is ours.
    if (explainFailure(error)?.code !== 'INVALID_REQUEST') throw error
    const message = 'A value in the arguments cannot be stored: leave out NUL and broken characters.'
    await settle(session, { call, result: { error: message }, isError: true, startedAt })
  }
  if (isBlocked) deps.log.warn({ run_id: run.id, agent_id: agent.id, tool: call.name }, 'a capability was refused')
  if (hasStarted) deps.onReady()
  if (hasTasks) deps.onTasks?.(run.project_id)
  if (refused) deps.onRefused?.(run, refused)
}

function writtenEvent({ data }: Extract<RunEvent, { kind: 'tool.completed' }>): RunEvent {
  const { step, call_id, result, is_error, blocked, started_at } = data
  return { kind: 'tool.written', data: { step, call_id, result, is_error, blocked, started_at } }
}
