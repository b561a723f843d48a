import { explainFailure } from '../db/failures.ts'
import { fault } from '../kernel/fault.ts'
import type { WriteResult } from '../kernel/tool.ts'
import type { PendingCall } from './run-state.ts'
import { append, appendWritten, type Session } from './session.ts'
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
    await write(session, call)
  }
}

async function write(session: Session, call: PendingCall): Promise<void> {
  const { run, deps } = session
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
        agentId: run.agent_id,
        bounds: run.rights,
        ancestors: run.ancestors,
        depth: run.chain_depth,
      })
      hasStarted = written.hasStarted
      hasTasks = written.hasTasks ?? false
      isBlocked = written.blocked === 'capability'
      refused = written.refused
      await fault('tool.after_effect_before_commit')
      return { events: [toEvent(call, written.result, written.isError, startedAt, written.blocked)] }
    })
  } catch (error) {
    // The model mends a text that no column takes (NUL, half a surrogate pair); everything else is ours.
    if (explainFailure(error)?.code !== 'INVALID_REQUEST') throw error
    const message = 'A value in the arguments cannot be stored: leave out NUL and broken characters.'
    await append(session, [toEvent(call, { error: message }, true, startedAt)])
  }
  if (isBlocked) deps.log.warn({ run_id: run.id, agent_id: run.agent_id, tool: call.name }, 'a capability was refused')
  if (hasStarted) deps.onReady()
  if (hasTasks) deps.onTasks?.(run.project_id)
  if (refused) deps.onRefused?.(run, refused)
}
