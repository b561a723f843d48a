// In an eval a call that would change something is not made. The model gets a fixed result instead.
import type { ClaimedRun } from '../journal/claim.ts'
import type { RunEvent } from '../kernel/run-event.ts'
import type { OwnedRun } from './owned-run.ts'
import { isHeld, type PendingCall } from './pending-call.ts'
import { toEvent } from './tool-result.ts'

const NOT_APPLIED = 'Nothing is applied in an eval: this call was not made. Go on as if it had succeeded.'
const NOBODY_ASKED = 'Nobody is asked in an eval: go on without an answer, or say that you need one.'

export const evalOf = ({ trigger: { eval_id: evalId } }: Pick<ClaimedRun, 'trigger'>): { eval_id?: string } =>
  evalId === undefined ? {} : { eval_id: evalId }

/** The results of the announced calls that are not made in an eval. */
export function heldInEval({ run, state, stage }: Pick<OwnedRun, 'run' | 'state' | 'stage'>): RunEvent[] {
  if (run.trigger.eval_id === undefined) return []
  return [...state.pending.values()].flatMap((call) => {
    const result = answerTo(call, stage)
    return result ? [toEvent(call, result, false)] : []
  })
}

/** Null if the call only reads, or starts a run that belongs to the eval too, and needs nobody's approval. */
function answerTo(call: PendingCall, { byName }: OwnedRun['stage']): Record<string, unknown> | null {
  const tool = byName.get(call.name)
  if (isHeld(call)) return { applied: false, note: NOT_APPLIED }
  // The caller answers a call of a tool that is gone.
  if (!tool || tool.kind === 'spawn_agent' || tool.kind === 'finish_loop') return null
  if (tool.kind === 'ask_human') return { answered: false, note: NOBODY_ASKED }
  return call.effect === 'readonly' ? null : { applied: false, note: NOT_APPLIED }
}
