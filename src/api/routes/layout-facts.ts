// Gathers the facts of a layout. Every id in the context is looked up in the caller's project, even if the scenario
// does not need it: an id of another project is answered like an unknown one.
import { nameAgents } from '../../agents/agent-names.ts'
import type { Db } from '../../db/pool.ts'
import { getEval, getListed } from '../../evals/read-evals.ts'
import { isForApproval } from '../../genui/approval.ts'
import type { LayoutFacts } from '../../genui/layout.ts'
import type { RunFacts } from '../../genui/run-summary.ts'
import { invalidRequest, notFound } from '../../kernel/errors.ts'
import { type LayoutContext, type Scenario, scenarioOf } from '../../kernel/genui.ts'
import type { Run } from '../../kernel/run.ts'
import type { Task } from '../../kernel/task.ts'
import { getRun } from '../../runs/read-runs.ts'
import { newestSubRuns } from '../../runs/sub-runs.ts'
import { readRunAnswer } from '../../supervisor/answer.ts'
import { openQuestions } from '../../tasks/open-questions.ts'
import { getTask } from '../../tasks/tasks.ts'

const MOST_SUB_RUNS = 100
const MOST_QUESTIONS = 5

export async function gatherFacts(db: Db, projectId: string, context: LayoutContext): Promise<LayoutFacts> {
  const scenario = scenarioOf(context.scenario)
  requireIdFor(scenario, context)
  const task = context.task_id === undefined ? null : await getTask(db, projectId, context.task_id)
  const run = context.run_id === undefined ? null : await getRun(db, projectId, context.run_id)
  const listed = context.eval_id === undefined ? null : await getListed(db, projectId, context.eval_id)
  if (scenario === 'approval' && task) return { scenario, facts: await approvalFacts(db, projectId, task) }
  if (scenario === 'run_summary' && run) return { scenario, facts: await runFacts(db, run) }
  if (scenario === 'eval_comparison' && listed) {
    return { scenario, facts: await getEval(db, projectId, listed.id) }
  }
  const { scenario: _, task_id, run_id, eval_id, title, fields, ...facts } = context
  const known = [
    ...(task ? [{ target: 'task', id: task.id } as const] : []),
    ...(run ? [{ target: 'run', id: run.id } as const] : []),
    ...(listed ? [{ target: 'eval', id: listed.id } as const] : []),
  ]
  return { scenario: 'generic', facts: { title, fields, facts, known } }
}

/** The figures of an eval are computed from all of its results. */
export const readsMuch = ({ scenario }: LayoutContext): boolean => scenarioOf(scenario) === 'eval_comparison'

const NEEDED = { generic: null, approval: 'task_id', run_summary: 'run_id', eval_comparison: 'eval_id' } as const

function requireIdFor(scenario: Scenario, context: LayoutContext): void {
  const name = NEEDED[scenario]
  if (name !== null && context[name] === undefined) {
    throw invalidRequest(`The scenario ${scenario} needs context.${name}.`)
  }
}

async function approvalFacts(db: Db, projectId: string, task: Task) {
  // An ordinary task is done and not approved, so there is nothing to decide about it.
  if (!isForApproval(task)) throw notFound('task')
  const { type, id } = task.created_by
  const names = await nameAgents(db, projectId, [type === 'agent' ? id : null])
  return { task, author: id === null ? null : (names.get(id) ?? null) }
}

async function runFacts(db: Db, run: Run): Promise<RunFacts> {
  const { id: runId, project_id: projectId } = run
  const { subRuns, hasMore } = await newestSubRuns(db, { projectId, runId, limit: MOST_SUB_RUNS })
  const names = await nameAgents(db, projectId, [run.agent_id, ...subRuns.map((sub) => sub.agent_id)])
  const questions = run.status === 'paused' ? await openQuestions(db, { projectId, runId, limit: MOST_QUESTIONS }) : []
  return {
    run,
    agent: run.agent_id === null ? nodeOf(run) : (names.get(run.agent_id) ?? null),
    subRuns: subRuns.map(({ agent_id: agentId, node, ...sub }) => ({
      ...sub,
      name: agentId === null ? node : (names.get(agentId) ?? null),
    })),
    hasMoreSubRuns: hasMore,
    questions,
    supervisor: isOfSupervisor(run) ? await supervisorFacts(db, run) : null,
  }
}

const nodeOf = ({ trigger }: Run): string | null => (typeof trigger.node === 'string' ? trigger.node : null)

/** The runs of specialists have the trigger of their supervisor, and a node of their own. */
const isOfSupervisor = ({ agent_id: agentId, trigger }: Run): boolean =>
  agentId === null && trigger.type === 'supervisor' && trigger.node === 'supervisor'

async function supervisorFacts(db: Db, run: Run): Promise<RunFacts['supervisor']> {
  const { result, metadata } = await readRunAnswer(db, run.project_id, run.id)
  const { plan, history } = result.supervisor_state
  return { variant: metadata.system_variant, plan, history }
}
