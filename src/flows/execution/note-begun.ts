import { defined } from '../../kernel/defined.ts'
import type { FlowEvent } from '../../kernel/flow-run.ts'
import type { FlowLeaf } from '../machine/flow-leaf.ts'
import { attemptKey, type FlowState } from './state.ts'

export interface LeafStart {
  leaf: FlowLeaf
  worker: string | null
  handover: { from: string; to: string } | null
}

/** Notes that the attempt begins now. Returns its event. */
export function noteBegun(state: FlowState, { leaf, worker, handover }: LeafStart): FlowEvent {
  state.begun.set(attemptKey(leaf), Date.now())
  const name = leaf.nodeId ?? leaf.title ?? ('agent' in leaf.node ? leaf.node.agent : leaf.node.function)
  const data = defined({
    task_id: leaf.id,
    name,
    attempt: leaf.attempt,
    agent: 'agent' in leaf.node ? leaf.node.agent : undefined,
    after: leaf.after.length > 0 ? [...leaf.after] : undefined,
    worker: worker ?? undefined,
    handover: handover ? { from: handover.from, to: handover.to } : undefined,
  })
  return { kind: 'task.started', data }
}
