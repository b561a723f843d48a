// Code checks the supervisor's decision, which takes effect only if all of it fits: an unknown specialist, an unknown
// owner or a forbidden step of a todo makes the whole decision a failed one.

import { readDecision, type SupervisorDecision } from '../kernel/decision.ts'
import { defined } from '../kernel/defined.ts'
import type { SupervisorState, ToDo, ToDoStatus } from '../kernel/supervisor.ts'

export type JudgedAnswer = { ok: true; state: SupervisorState } | { ok: false; problem: string }

/** The state after the decision that the answer holds, or the problem with the answer. */
export function judgeDecision(state: SupervisorState, answer: string, specialists: readonly string[]): JudgedAnswer {
  const read = readDecision('supervisor_decision', answer)
  if (!read.ok) return read
  const { action, agent, notes } = read.decision
  const plan = read.decision.plan.map(toDoOf)
  const problem = todoProblem(state.plan, plan, specialists) ?? agentProblem(read.decision, specialists)
  if (problem) return { ok: false, problem }
  const { active_agent: _, notes: earlier, ...rest } = state
  const said = notes ?? earlier
  const after: SupervisorState = {
    ...rest,
    status: action === 'finish' ? 'DONE' : action === 'escalate' ? 'ESCALATE' : 'RUNNING',
    plan: [...plan, ...keptOf(state.plan, plan)],
    ...(action === 'delegate' && agent ? { active_agent: agent } : {}),
    ...(said === undefined ? {} : { notes: said }),
  }
  return { ok: true, state: after }
}

/** Models that must name every field send null for an absent one. */
function toDoOf({
  owner_agent: owner,
  parent_id: parent,
  metadata,
  ...toDo
}: SupervisorDecision['plan'][number]): ToDo {
  return {
    ...toDo,
    ...defined({
      owner_agent: owner || undefined,
      parent_id: parent || undefined,
      metadata: metadata ?? undefined,
    }),
  }
}

/** A todo that is done stays in the plan, even if the supervisor leaves it out. */
function keptOf(before: readonly ToDo[], after: readonly ToDo[]): ToDo[] {
  const named = new Set(after.map(({ id }) => id))
  return before.filter(({ id, status }) => status === 'DONE' && !named.has(id))
}

/** A longer plan would fill the prompts that contain it. */
const LONGEST_PLAN = 100_000

const NEXT: Readonly<Record<ToDoStatus, readonly ToDoStatus[]>> = {
  PENDING: ['IN_PROGRESS'],
  IN_PROGRESS: ['DONE', 'BLOCKED'],
  BLOCKED: ['PENDING'],
  DONE: [],
}

/** The reason why one plan cannot follow the other, or null. A new todo may begin with any status. */
export function todoProblem(
  before: readonly ToDo[],
  after: readonly ToDo[],
  specialists: readonly string[],
): string | null {
  const statusOf = new Map(before.map(({ id, status }) => [id, status]))
  const ids = new Set<string>()
  for (const { id, status, owner_agent: owner } of after) {
    if (ids.has(id)) return `Two todos have the id ${id}.`
    ids.add(id)
    if (owner !== undefined && !specialists.includes(owner)) {
      return `The todo ${id} belongs to ${owner}, which is no specialist. There are: ${specialists.join(', ')}.`
    }
    const was = statusOf.get(id) ?? status
    if (was !== status && !NEXT[was].includes(status)) return `The todo ${id} is ${was} and cannot become ${status}.`
  }
  const orphan = after.find(
    ({ id, parent_id: parent }) =>
      parent !== undefined && (parent === id || (!ids.has(parent) && !statusOf.has(parent))),
  )
  if (orphan) return `The todo ${orphan.id} is below ${orphan.parent_id}, which is no other todo.`
  return JSON.stringify(after).length > LONGEST_PLAN ? `The plan has more than ${LONGEST_PLAN} characters.` : null
}

function agentProblem({ action, agent }: SupervisorDecision, specialists: readonly string[]): string | null {
  if (action !== 'delegate') return null
  if (!agent) return 'A decision to delegate names an agent.'
  return specialists.includes(agent) ? null : `${agent} is no specialist. There are: ${specialists.join(', ')}.`
}
