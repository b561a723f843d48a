// The fault points that each test file exercises. Together these lists hold every point.
import type { FaultPoint } from '../../src/kernel/fault.ts'

/** In crash.test.ts. */
export const serverPoints = ['migrate.mid', 'api.after_commit_before_reply'] as const satisfies readonly FaultPoint[]

/** In run-crash.test.ts; the reply to a trigger is lost there too. */
export const runPoints = [
  'api.after_commit_before_reply',
  'claim.before',
  'claim.after',
  'llm.mid_stream',
  'llm.after_reply_before_commit',
  'tool.before',
  'tool.after_effect_before_commit',
  'step.after_commit',
  'spawn.after_insert',
  'park.after_commit',
  'cancel.mid',
  'final.after_commit',
] as const satisfies readonly FaultPoint[]

/** In reactions.test.ts. */
export const changePoints = ['approval.after_decision_before_apply'] as const satisfies readonly FaultPoint[]

/** In flow-crash.test.ts. */
export const flowPoints = ['flow.mid'] as const satisfies readonly FaultPoint[]

/** In topology-crash.test.ts. */
export const topologyPoints = ['topology.mid_switch'] as const satisfies readonly FaultPoint[]

export type ChangePoint = (typeof changePoints)[number]
export type ServerPoint = (typeof serverPoints)[number]
export type RunPoint = (typeof runPoints)[number]
