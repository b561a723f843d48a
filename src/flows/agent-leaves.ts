import { findAgent } from '../agents/agents.ts'
import type { Db } from '../db/pool.ts'
import type { AgentLeaf } from '../kernel/flow.ts'
import { idFrom } from '../kernel/id.ts'
import { type ChildOutcome, readOutcomes } from '../runs/run-outcomes.ts'
import type { LeafOutcome, LeafTask } from './machine.ts'

/** The runs behind a leaf: one, or one for each thing it is called for. The same ids in every replay. */
export function runIdsOf(flowRunId: string, { id, attempt, isEach, argument }: LeafTask): string[] {
  const name = `flow ${flowRunId} ${id} ${attempt}`
  return isEach ? (argument as unknown[]).map((_, place) => idFrom(`${name} ${place}`)) : [idFrom(name)]
}

type AgentTask = LeafTask & { leaf: AgentLeaf }

/** Queues the runs of leaves that are not there yet. Answers those that cannot be, with what is wrong. */
export async function startAgentLeaves(
  db: Db,
  of: { flowRunId: string; projectId: string },
  tasks: readonly AgentTask[],
): Promise<{ task: LeafTask; problem: string }[]> {
  const byAgent = Map.groupBy(tasks, ({ leaf }) => leaf.agent)
  const problems: { task: LeafTask; problem: string }[] = []
  for (const [agent, given] of byAgent) {
    const runs = given.flatMap((task) => {
      const inputs = task.isEach ? (task.argument as unknown[]) : [task.argument]
      return runIdsOf(of.flowRunId, task).map((id, place): NewRun => ({ ...runFor(task, inputs[place]), id }))
    })
    const problem = await insertRuns(db, { ...of, agent }, runs)
    if (problem) problems.push(...given.map((task) => ({ task, problem })))
  }
  return problems
}

const runFor = ({ id, leaf, answer }: AgentTask, input: unknown): Omit<NewRun, 'id'> => ({
  ...{ taskId: id, input, answer, timeout: leaf.timeout },
})

/** The same for one thing that goes through a pipeline. */
export async function insertAgentRun(
  db: Db,
  run: { id: string; flowRunId: string; projectId: string; taskId: string; leaf: AgentLeaf; input: unknown },
): Promise<string | null> {
  const { leaf, flowRunId, projectId, id, taskId, input } = run
  return insertRuns(db, { flowRunId, projectId, agent: leaf.agent }, [
    { id, taskId, input, answer: null, timeout: leaf.timeout },
  ])
}

interface NewRun {
  id: string
  taskId: string
  input: unknown
  answer: LeafTask['answer']
  timeout: number | undefined
}

async function insertRuns(
  db: Db,
  of: { flowRunId: string; projectId: string; agent: string },
  runs: readonly NewRun[],
): Promise<string | null> {
  const { flowRunId, projectId } = of
  const agent = await findAgent(db, projectId, of.agent)
  if (!agent) return `There is no agent called ${of.agent}.`
  if (!agent.enabled) return `The agent ${agent.name} is disabled.`
  await db.query(
    `insert into agent_runs (id, project_id, agent_id, trigger, input, max_steps, timeout, flow_run_id, answer)
     select u.id, $2, $3, jsonb_build_object('type', 'flow', 'flow_run_id', $5::uuid, 'task_id', u.task_id), u.input, $4,
       coalesce(u.timeout, $6), $5, u.answer
     from unnest($1::uuid[], $7::text[], $8::jsonb[], $9::int[], $10::jsonb[]) as u (id, task_id, input, timeout, answer)
     on conflict (id) do nothing`,
    [
      runs.map((run) => run.id),
      projectId,
      agent.id,
      agent.max_steps,
      flowRunId,
      agent.default_timeout,
      runs.map((run) => run.taskId),
      runs.map((run) => JSON.stringify(run.input ?? null)),
      runs.map((run) => run.timeout ?? null),
      runs.map((run) => (run.answer === null ? null : JSON.stringify(run.answer))),
    ],
  )
  return null
}

/** Leaves whose runs have all ended, with what became of them. */
export async function settledAgents(
  db: Db,
  flowRunId: string,
  tasks: readonly LeafTask[],
): Promise<{ task: LeafTask; outcome: LeafOutcome }[]> {
  if (tasks.length === 0) return []
  const outcomes = await readOutcomes(
    db,
    tasks.flatMap((task) => runIdsOf(flowRunId, task)),
  )
  return tasks.flatMap((task) => {
    const runs = runIdsOf(flowRunId, task).map((id) => outcomes.get(id))
    return runs.every((run) => run?.hasEnded)
      ? [
          {
            task,
            outcome: together(
              task,
              runs.flatMap((run) => run ?? []),
            ),
          },
        ]
      : []
  })
}

function together(task: LeafTask, runs: readonly ChildOutcome[]): LeafOutcome {
  const failure = runs.find((run) => run.status !== 'completed')
  if (failure) return { status: 'failed', error: failure.errorMessage ?? `The run ${failure.id} is ${failure.status}.` }
  const values = runs.map((run) => run.summary ?? '')
  return { status: 'completed', value: task.isEach ? values : values[0] }
}
