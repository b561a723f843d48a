import type { Actor } from '../kernel/principal.ts'

/** Who makes a change, as its history, its audit entry and those who react to it see them. */
export interface Author {
  type: 'user' | 'agent'
  id: string | null
  runId: string | null
  /** Who approved what an agent had suggested. */
  approvedBy: string | null
  /** 0 by people; one more than the change that started the run which makes this one. */
  depth: number
  actor: Actor
}

/** A person, or whoever uses an API key. */
export function byPerson(actor: Actor): Author {
  return { type: 'user', id: actor.id, runId: null, approvedBy: null, depth: 0, actor }
}

/** An agent in its run, or later by the approval of a person, who is then the one that acts. */
export function byAgent(
  agentId: string,
  { runId, depth, approver = null }: { runId: string | null; depth: number; approver?: Actor | null },
): Author {
  const actor = approver
    ? { ...approver, type: 'agent' as const, id: agentId }
    : { type: 'agent' as const, id: agentId, requestId: null, address: null }
  return { type: 'agent', id: agentId, runId, approvedBy: approver?.id ?? null, depth, actor }
}
