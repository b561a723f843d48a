// The switches of a run: its owner asks them before each step.
import type { RunEvent } from '../kernel/run-event.ts'
import { settleApprovals } from './approvals.ts'
import { cancelled, leave, notBegun, stopped } from './end.ts'
import { append, type OwnedRun, RunLost } from './owned-run.ts'
import { parkHalted } from './park.ts'
import { isHeld } from './pending-call.ts'

/**
 * Acts on a cancel, a stop or another request that arrived meanwhile. go: there was none · left: the run is no longer
 * this process's.
 */
export async function heedSwitches(owned: OwnedRun): Promise<'go' | 'left'> {
  const { control, state, deps, run } = owned
  for (;;) {
    if (control.interruption() === 'lapse') throw new RunLost('lapsed')
    if (control.interruption() === 'cancel') return leave(owned, cancelled(state.text || null))
    if (control.isAskedToStop()) return pauseStopped(owned)
    if (control.interruption() === 'hand_back' || control.isAskedToYield()) return handBack(owned)
    if (!deps.isHalted(run.project_id)) return 'go'
    if (await parkHalted(owned)) return 'left'
  }
}

/** The agent was stopped. The attempt at its task goes on in a new run when the agent is started. */
async function pauseStopped(owned: OwnedRun): Promise<'left'> {
  const { state } = owned
  // The run that continues this one asks anew about the calls that nobody has decided about.
  const held = [...state.pending.values()].filter(isHeld)
  if (held.length > 0) await settleApprovals(owned, held)
  return leave(owned, stopped('stopped', state.text || null, { notBegun: notBegun(state) }))
}

/**
 * Gives the run back because this process lacks a tool of it: the next claim leaves it to a process that has the tool.
 * `first` are events that come before.
 */
export async function handBackForTool(
  { run, state, deps }: Pick<OwnedRun, 'run' | 'state' | 'deps'>,
  first: readonly RunEvent[] = [],
): Promise<void> {
  const { id: runId, fence, ancestors } = run
  const event = { kind: 'run.parked', data: { waits_for: 'tool', not_begun: notBegun(state) } } as const
  const change = { set: { release: true, ready_in_ms: 0 } } as const
  await deps.journal.append({ runId, fence, events: [...first, event], change, ancestors })
  deps.onReady()
}

/**
 * Gives the run back at shutdown, or because this process is needed for one run alone: another slot continues the run.
 */
export async function handBack(owned: OwnedRun): Promise<'left'> {
  const data = { waits_for: 'slot', not_begun: notBegun(owned.state) }
  await append(owned, [{ kind: 'run.parked', data }], { set: { release: true, ready_in_ms: 0 } })
  owned.deps.onReady()
  return 'left'
}
