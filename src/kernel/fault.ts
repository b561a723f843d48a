// Named points at which a test may kill, stop or delay the process. Without a plan a call is a comparison with null.
// The list must equal the list of the crash tests: a point that is not exercised is not a promise.

export const faultPoints = [
  'migrate.mid',
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
  'approval.after_decision_before_apply',
  'approval.after_decision',
  'approval.before_call',
  'final.after_commit',
  'flow.mid',
  'topology.mid_switch',
] as const

export type FaultPoint = (typeof faultPoints)[number]
/** `at` counts the passings of the point, from 1; the fault occurs at that passing. */
export type FaultPlan = Readonly<Partial<Record<FaultPoint, { action: 'kill' | 'stop'; at: number }>>>

let plan: FaultPlan | null = null
const passed = new Map<FaultPoint, number>()

/** Called once at start, only if a fault plan was configured. */
export function setFaultPlan(next: FaultPlan | null): void {
  plan = next
}

export function fault(point: FaultPoint): Promise<void> | undefined {
  if (plan === null) return undefined
  const planned = plan[point]
  if (!planned) return undefined
  const times = (passed.get(point) ?? 0) + 1
  passed.set(point, times)
  if (times !== planned.at) return undefined
  process.kill(process.pid, planned.action === 'kill' ? 'SIGKILL' : 'SIGSTOP')
  // The signal is delivered asynchronously; no code after the point may run before that.
  return new Promise((resolve) => setTimeout(resolve, 1_000))
}
