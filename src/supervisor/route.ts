import type { SupervisorState } from '../kernel/supervisor.ts'

/** The routing contract: the next node depends on the supervisor's state alone. No answer of a model is a route. */
export function route({ status, active_agent: activeAgent }: Pick<SupervisorState, 'status' | 'active_agent'>): string {
  if (status === 'DONE') return 'finalizer'
  if (status === 'ESCALATE') return 'hitl_escalation'
  return activeAgent ?? 'supervisor'
}
