// The fault points that each test file exercises. Together these lists hold every point.
import type { FaultPoint } from '../../src/kernel/fault.ts'

/** The points that crash.test.ts exercises. */
export const serverPoints = ['migrate.mid', 'api.after_commit_before_reply'] as const satisfies readonly FaultPoint[]

/** The points that run-crash.test.ts exercises; it also loses the reply to a trigger. */
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

/** The points that reactions.test.ts exercises. */
export const changePoints = ['approval.after_decision_before_apply'] as const satisfies readonly FaultPoint[]

/** The points that approval-crash.test.ts exercises, beside those around every call. */
export const approvalPoints = [
  'approval.after_decision',
  'approval.before_call',
] as const satisfies readonly FaultPoint[]

/** The points that flow-crash.test.ts exercises. */
export const flowPoints = ['flow.mid'] as const satisfies readonly FaultPoint[]

/** The points that topology-crash.test.ts exercises. */
export const topologyPoints = ['topology.mid_switch'] as const satisfies readonly FaultPoint[]

export type ApprovalPoint = (typeof approvalPoints)[number]
export type ChangePoint = (typeof changePoints)[number]
export type ServerPoint = (typeof serverPoints)[number]
export type RunPoint = (typeof runPoints)[number]
