import type { Actor } from '../kernel/principal.ts'

/** The author of a change, as its history, its audit entry and reacting agents see the author. */
export interface Author {
  type: 'user' | 'agent'
  id: string | null
  runId: string | null
  /** The person who approved an agent's suggestion, or the call that makes the change. */
  approvedBy: string | null
  /** 0 for changes by people; for a change by a run, one more than that of the change that started the run. */
  depth: number
  actor: Actor
}

/** The author is a person, or the user of an API key. */
export function byPerson(actor: Actor): Author {
  return { type: 'user', id: actor.id, runId: null, approvedBy: null, depth: 0, actor }
}

/** The author is an agent in its run. After the approval of a suggestion the approving person is the actor. */
export function byAgent(
  agentId: string,
  {
    runId,
    depth,
    approver = null,
    approvedBy = approver?.id ?? null,
  }: { runId: string | null; depth: number; approver?: Actor | null; approvedBy?: string | null },
): Author {
  const actor = approver
    ? { ...approver, type: 'agent' as const, id: agentId }
    : { type: 'agent' as const, id: agentId, requestId: null, address: null }
  return { type: 'agent', id: agentId, runId, approvedBy, depth, actor }
}
