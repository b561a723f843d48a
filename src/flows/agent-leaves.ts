import { findAgent } from '../agents/agents.ts'
import { explainFailure } from '../db/failures.ts'
import type { Db } from '../db/pool.ts'
import type { AgentLeaf } from '../kernel/flow.ts'
import { idFrom } from '../kernel/id.ts'
import { type ChildOutcome, readOutcomes } from '../runs/run-outcomes.ts'
import type { LeafOutcome, LeafTask } from './machine.ts'
import { messageOf } from './pipeline/parts.ts'
import { createTurns } from './turns.ts'

/** The runs behind a leaf: one, or one for each of its calls. Every replay gets the same ids. */
export function runIdsOf(flowRunId: string, { id, attempt, isEach, calls }: LeafTask): string[] {
  const name = `flow ${flowRunId} ${id} ${attempt}`
  return isEach ? Array.from({ length: calls }, (_, place) => idFrom(`${name} ${place}`)) : [idFrom(name)]
}

type AgentTask = LeafTask & { leaf: AgentLeaf }
type Problem = { task: LeafTask; problem: string }

/** At most so much is rendered and written in one go; between two goes other work has its turn. */
const MOST_CHARACTERS = 2_097_152
const MOST_RUNS = 1_000

/**
 * Queues the runs of leaves that have none yet. Answers the leaves that cannot be started, each with its problem: a
 * problem of one leaf fails that leaf alone. Rejects only where the database cannot be reached.
 */
export async function startAgentLeaves(
  db: Db,
  of: { flowRunId: string; projectId: string },
  tasks: readonly AgentTask[],
): Promise<Problem[]> {
  const problems: Problem[] = []
  for (const [name, given] of Map.groupBy(tasks, ({ leaf }) => leaf.agent)) {
    const agent = await usableAgent(db, of.projectId, name)
    if (typeof agent === 'string') problems.push(...given.map((task) => ({ task, problem: agent })))
    else problems.push(...(await startTogether(db, { ...of, agent }, given)))
  }
  return problems
}

async function startTogether(db: Db, of: Insertion, tasks: readonly AgentTask[]): Promise<Problem[]> {
  const turn = createTurns()
  const problems = new Map<LeafTask, string>()
  let batch: { task: AgentTask; run: NewRun }[] = []
  let characters = 0
  const flush = async (): Promise<void> => {
    const entries = batch
    batch = []
    characters = 0
    for (const [task, problem] of await insertEach(db, of, entries)) problems.set(task, problem)
  }
  for (const task of tasks) {
    for (const [place, id] of runIdsOf(of.flowRunId, task).entries()) {
      try {
        const run = newRun({ id, taskId: task.id, leaf: task.leaf, answer: task.answer, input: task.argumentOf(place) })
        batch.push({ task, run })
        characters += run.input.length
      } catch (error) {
        problems.set(task, messageOf(error))
        break
      }
      if (characters > MOST_CHARACTERS || batch.length >= MOST_RUNS) await flush()
      const pause = turn()
      if (pause) await pause
    }
  }
  await flush()
  return [...problems].map(([task, problem]) => ({ task, problem }))
}

/** Inserts all runs at once; where one makes that fail, one by one. Answers those that cannot be stored. */
async function insertEach(
  db: Db,
  of: Insertion,
  entries: readonly { task: AgentTask; run: NewRun }[],
): Promise<Map<LeafTask, string>> {
  if (entries.length === 0) return new Map()
  try {
    await insertRuns(
      db,
      of,
      entries.map(({ run }) => run),
    )
    return new Map()
  } catch (error) {
    if (explainFailure(error)?.code === 'UNAVAILABLE') throw error
    const [only] = entries
    if (only && entries.length === 1) return new Map([[only.task, messageOf(error)]])
    const problems = new Map<LeafTask, string>()
    for (const entry of entries) for (const [task, each] of await insertEach(db, of, [entry])) problems.set(task, each)
    return problems
  }
}

/** Inserts the run of one item of a pipeline. */
export async function insertAgentRun(
  db: Db,
  run: { id: string; flowRunId: string; projectId: string; taskId: string; leaf: AgentLeaf; input: unknown },
): Promise<string | null> {
  const { leaf, flowRunId, projectId, id, taskId, input } = run
  const agent = await usableAgent(db, projectId, leaf.agent)
  if (typeof agent === 'string') return agent
  await insertRuns(db, { flowRunId, projectId, agent }, [newRun({ id, taskId, leaf, answer: null, input })])
  return null
}

interface NewRun {
  id: string
  taskId: string
  /** As JSON, as is the answer. */
  input: string
  answer: string | null
  timeout: number | null
}

/** Throws where the input cannot be serialised. */
const newRun = (given: {
  id: string
  taskId: string
  leaf: AgentLeaf
  answer: LeafTask['answer']
  input: unknown
}): NewRun => ({
  id: given.id,
  taskId: given.taskId,
  input: JSON.stringify(given.input ?? null),
  answer: given.answer === null ? null : JSON.stringify(given.answer),
  timeout: given.leaf.timeout ?? null,
})

/** The agent, or a sentence about what is wrong with it. */
async function usableAgent(db: Db, projectId: string, name: string): Promise<Agent | string> {
  const agent = await findAgent(db, projectId, name)
  if (!agent) return `There is no agent called ${name}.`
  return agent.enabled ? agent : `The agent ${agent.name} is disabled.`
}

type Agent = NonNullable<Awaited<ReturnType<typeof findAgent>>>

interface Insertion {
  flowRunId: string
  projectId: string
  agent: Agent
}

async function insertRuns(db: Db, { flowRunId, projectId, agent }: Insertion, runs: readonly NewRun[]): Promise<void> {
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
      runs.map((run) => run.input),
      runs.map((run) => run.timeout),
      runs.map((run) => run.answer),
    ],
  )
}

/** Answers the leaves that have runs: the owner that announced a leaf may have died before it queued the runs. */
export async function haveRuns(db: Db, flowRunId: string, tasks: readonly LeafTask[]): Promise<Set<LeafTask>> {
  if (tasks.length === 0) return new Set()
  const firstIds = tasks.map((task) => runIdsOf(flowRunId, task)[0] ?? null)
  const { rows } = await db.query<{ id: string }>('select id from agent_runs where id = any($1::uuid[])', [firstIds])
  const known = new Set(rows.map(({ id }) => id))
  return new Set(tasks.filter((_, place) => known.has(firstIds[place] ?? '')))
}

/** Leaves whose runs have all ended, with their outcomes. */
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
