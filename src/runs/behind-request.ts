// People wait behind a request for the answer of a supervisor. The runs below it wait for no provider: they end, up to the
// supervisor's run, and continue with that run.
import type { ClaimedRun } from '../journal/claim.ts'

type Placed = Pick<ClaimedRun, 'part' | 'trigger'>

export const isBehindRequest = ({ part, trigger }: Placed): boolean => part !== null || trigger.behind_request === true

/** False in an eval, whose runs nobody continues. */
export const goesOnWithRequest = (run: Placed): boolean => isBehindRequest(run) && run.trigger.eval_id === undefined

/** The mark in the trigger of a sub-run. */
export const requestOf = (run: Placed): { behind_request?: true } =>
  goesOnWithRequest(run) ? { behind_request: true } : {}
