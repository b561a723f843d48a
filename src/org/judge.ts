// Code judges a model's decision about a task: only an available subordinate is given work, and only a plan that can be
// carried out is followed.
import { type DecisionName, planProblem, readDecision } from '../kernel/decision.ts'
import { createMatcher, explainMatch } from './competency.ts'
import type { Desk, Subordinate } from './desk.ts'
import type { NewSubtask } from './subtasks.ts'
import type { WorkTask } from './work-row.ts'

export type Judged = { problem: string } | { subtasks: NewSubtask[]; note: string }

/** The judgement on an answer that gives nobody work; null for others, which need the available agents. */
export function judgeAlone(name: DecisionName, answer: string): Judged | null {
  if (name === 'delegation_decision') {
    const read = readDecision('delegation_decision', answer)
    if (!read.ok) return { problem: read.problem }
    const { delegate, reasoning } = read.decision
    return delegate ? null : { subtasks: [], note: reasoning || 'The agent does it itself.' }
  }
  const read = readDecision('task_plan', answer)
  if (!read.ok) return { problem: read.problem }
  return read.decision.subtasks.length > 0 ? null : { subtasks: [], note: 'The task is done in one piece.' }
}

/** The judgement on an answer, given the subordinates that are available at this moment. */
export function judge(name: DecisionName, answer: string, desk: Desk): Judged {
  const alone = judgeAlone(name, answer)
  if (alone) return alone
  return name === 'delegation_decision' ? judgeDelegation(answer, desk) : judgePlan(answer, desk)
}

function judgeDelegation(answer: string, { task, subordinates, matcher }: Desk): Judged {
  const read = readDecision('delegation_decision', answer)
  if (!read.ok) return { problem: read.problem }
  const { subordinate: named, reasoning } = read.decision
  if (named === null) {
    const needs = matcher.needsOf(task)
    const [best] = matcher.rank(needs)
    if (!best) return { subtasks: [], note: 'No available subordinate suits the task: the agent does it itself.' }
    return delegated(task, best.candidate, `${reasoning} ${explainMatch(best, needs)}`.trim())
  }
  const chosen = subordinates.find((each) => each.name === named)
  if (!chosen) {
    const names = subordinates.map((each) => each.name).join(', ')
    return { problem: `subordinate: "${named}" is not available (available: ${names || 'nobody'}).` }
  }
  return delegated(task, chosen, `${reasoning} ${explainMatch({ candidate: chosen, met: [] }, null)}`.trim())
}

function delegated(task: WorkTask, to: Pick<Subordinate, 'id' | 'name'>, reasoning: string): Judged {
  const { title, description, metadata } = task
  const subtask: NewSubtask = {
    title,
    description,
    assignedTo: to.id,
    dependsOn: [],
    planDepth: task.plan_depth,
    metadata: {
      ...(Array.isArray(metadata.competencies) ? { competencies: metadata.competencies } : {}),
      delegated_by: task.assigned_to,
      reasoning,
    },
  }
  return { subtasks: [subtask], note: `Delegated to ${to.name}. ${reasoning}` }
}

function judgePlan(answer: string, { task, subordinates }: Desk): Judged {
  const read = readDecision('task_plan', answer)
  if (!read.ok) return { problem: read.problem }
  const parts = read.decision.subtasks.map((part, index) => ({
    ...part,
    id: part.id ?? `${index + 1}`,
    depends_on: part.depends_on ?? [],
  }))
  const problem = planProblem(parts)
  if (problem) return { problem }
  const agentId = task.assigned_to ?? ''
  // A subtask that is given to an agent counts as load for the next choice.
  const matcher = createMatcher(subordinates.map((each) => ({ ...each })))
  const places = new Map(parts.map((part, index) => [part.id, index]))
  const subtasks = parts.map(({ title, description, competencies, depends_on }): NewSubtask => {
    const asked = { title, description, metadata: { competencies } }
    const needs = matcher.needsOf(asked)
    const best = needs.length === 0 ? undefined : matcher.rank(needs)[0]
    const reasoning = best ? explainMatch(best, needs) : 'No subordinate suits the subtask: the agent does it itself.'
    if (best) best.candidate.load++
    return {
      title,
      description,
      assignedTo: best?.candidate.id ?? agentId,
      dependsOn: depends_on.map((id) => places.get(id) ?? 0),
      planDepth: task.plan_depth + 1,
      metadata: {
        ...(competencies.length > 0 ? { competencies } : {}),
        delegated_by: agentId,
        reasoning,
      },
    }
  })
  return { subtasks, note: `Split into ${subtasks.length} subtasks.` }
}
