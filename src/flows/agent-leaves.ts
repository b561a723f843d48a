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

/** Queues the runs of a leaf that are not there yet. Answers what is wrong where it cannot. */
export async function startAgentLeaf(
  db: Db,
  { flowRunId, projectId, task }: { flowRunId: string; projectId: string; task: LeafTask & { leaf: AgentLeaf } },
): Promise<string | null> {
  const inputs = task.isEach ? (task.argument as unknown[]) : [task.argument]
  const runs = runIdsOf(flowRunId, task).map((id, place) => ({ id, input: inputs[place] }))
  return insertRuns(db, { flowRunId, projectId, taskId: task.id, leaf: task.leaf, answer: task.answer }, runs)
}

/** The same for one thing that goes through a pipeline. */
export async function insertAgentRun(
  db: Db,
  run: { id: string; flowRunId: string; projectId: string; taskId: string; leaf: AgentLeaf; input: unknown },
): Promise<string | null> {
  return insertRuns(db, { ...run, answer: null }, [run])
}

async function insertRuns(
  db: Db,
  of: { flowRunId: string; projectId: string; taskId: string; leaf: AgentLeaf; answer: LeafTask['answer'] },
  runs: readonly { id: string; input: unknown }[],
): Promise<string | null> {
  const { flowRunId, projectId, taskId, leaf, answer } = of
  const agent = await findAgent(db, projectId, leaf.agent)
  if (!agent) return `There is no agent called ${leaf.agent}.`
  if (!agent.enabled) return `The agent ${agent.name} is disabled.`
  await db.query(
    `insert into agent_runs (id, project_id, agent_id, trigger, input, max_steps, timeout, flow_run_id, answer)
     select u.id, $2, $3, $4, u.input, $5, $6, $7, $9 from unnest($1::uuid[], $8::jsonb[]) as u (id, input)
     on conflict (id) do nothing`,
    [
      runs.map((run) => run.id),
      projectId,
      agent.id,
      JSON.stringify({ type: 'flow', flow_run_id: flowRunId, task_id: taskId }),
      agent.max_steps,
      leaf.timeout ?? agent.default_timeout,
      flowRunId,
      runs.map((run) => JSON.stringify(run.input ?? null)),
      answer === null ? null : JSON.stringify(answer),
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
