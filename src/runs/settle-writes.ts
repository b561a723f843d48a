import { explainFailure } from '../db/failures.ts'
import { fault } from '../kernel/fault.ts'
import type { RunEvent } from '../kernel/run-event.ts'
import type { WriteResult } from '../kernel/tool.ts'
import { hasHook } from './middleware.ts'
import { append, appendWritten, type OwnedRun } from './owned-run.ts'
import type { PendingCall } from './pending-call.ts'
import { type OwnResult, showResults } from './show-results.ts'
import { toEvent } from './tool-result.ts'

/**
 * Makes calls that change Muster's data, in the order of the model. Each is committed with its result, so a crash
 * leaves both or neither and the outcome is never unknown.
 */
export async function settleWrites(owned: OwnedRun, calls: readonly PendingCall[]): Promise<void> {
  const { control, deps, run } = owned
  for (const call of calls) {
    if (control.interruption() || control.isAskedToYield() || deps.isHalted(run.project_id)) return
    await fault('tool.before')
    if (!call.written) await write(owned, call)
    // The write is committed with its result, before the middleware takes its time with the result.
    if (call.written) await settle(owned, { call, ...call.written })
  }
}

async function settle(owned: OwnedRun, result: OwnResult): Promise<void> {
  const events = await showResults(owned, [result])
  if (events.length > 0) await append(owned, events)
}

async function write(owned: OwnedRun, call: PendingCall): Promise<void> {
  const { run, deps, agent } = owned
  const isShown = hasHook(owned, 'afterTool')
  const startedAt = Date.now()
  let hasStarted = false
  let hasTasks = false
  let isBlocked = false
  let refused: WriteResult['refused']
  try {
    await appendWritten(owned, async (tx) => {
      const written = await deps.write(tx, {
        name: call.name,
        args: call.args,
        ref: call.ref,
        projectId: run.project_id,
        runId: run.id,
        agentId: agent.id,
        hasAgent: run.agent_id !== null,
        // A part of a supervisor system is bound by its configuration, which no row of an agent holds.
        bounds: run.agent_id === null ? owned.rights : run.rights,
        ...(call.approval?.isApproved ? { approval: { by: call.approval.by } } : {}),
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
    // The model can mend a text that no column takes; any other failure is a bug or an outage.
    if (explainFailure(error)?.code !== 'INVALID_REQUEST') throw error
    const message = 'A value in the arguments cannot be stored: leave out NUL and broken characters.'
    await settle(owned, { call, result: { error: message }, isError: true, startedAt })
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
