// The runs of agents that work for a flow run: the leaves that are agents, and the agent stages of pipelines.
import { guessAgent } from '../../agents/agent-names.ts'
import { findAgent } from '../../agents/agents.ts'
import type { Db } from '../../db/pool.ts'
import { insertRunsSql } from '../../journal/insert-run.ts'
import { errorText } from '../../kernel/error-text.ts'
import type { AgentLeaf } from '../../kernel/flow.ts'
import { idFrom } from '../../kernel/id.ts'
import { MOST_RUNS_BELOW } from '../../kernel/limits.ts'
import { type ChildOutcome, readEnded } from '../../runs/run-outcomes.ts'
import type { FlowLeaf } from '../machine/flow-leaf.ts'
import type { LeafOutcome } from '../machine/machine.ts'
import type { LeafBounds } from './leaf-bounds.ts'
import { writeInBatches } from './write-in-batches.ts'

/** The ids of the runs behind an agent leaf: one, or one for each of its calls. Every replay gets the same ids. */
export function runIdsOf(flowRunId: string, { id, attempt, isEach, calls }: FlowLeaf): string[] {
  const name = `flow ${flowRunId} ${id} ${attempt}`
  return isEach ? Array.from({ length: calls }, (_, place) => idFrom(`${name} ${place}`)) : [idFrom(name)]
}

/** The id of the run of an agent stage. Failures survive a crash, so the same attempt at the same item is the same run. */
export const stageRunIdOf = (key: string, failures: number): string => idFrom(`flow ${key} ${failures}`)

type AgentFlowLeaf = FlowLeaf & { node: AgentLeaf }
type Problem = { leaf: FlowLeaf; problem: string }

export const isAgentLeaf = (leaf: FlowLeaf): leaf is AgentFlowLeaf => 'agent' in leaf.node

/** At most this many characters are rendered and written in one go. */
const MOST_CHARACTERS = 2_097_152

/**
 * Queues the runs of leaves. The caller leaves out leaves that have all their runs, because their agents may be disabled
 * by now. Returns the leaves that cannot be started, each with its problem. Rejects only if the database cannot be
 * reached.
 */
export async function startAgentLeaves(db: Db, of: LeafRuns, leaves: readonly AgentFlowLeaf[]): Promise<Problem[]> {
  const problems: Problem[] = []
  for (const [name, given] of Map.groupBy(leaves, ({ node }) => node.agent)) {
    const agent = await usableAgent(db, of.projectId, name)
    if (typeof agent === 'string') problems.push(...given.map((leaf) => ({ leaf, problem: agent })))
    else problems.push(...(await queueRuns(db, { ...of, agent }, given)))
  }
  return problems
}

async function queueRuns(db: Db, of: Insertion, leaves: readonly AgentFlowLeaf[]): Promise<Problem[]> {
  const problems = new Map<FlowLeaf, string>()
  function* calls(): Generator<{ leaf: AgentFlowLeaf; place: number; id: string }> {
    for (const leaf of leaves) {
      for (const [place, id] of runIdsOf(of.flowRunId, leaf).entries()) {
        if (problems.has(leaf)) break
        yield { leaf, place, id }
      }
    }
  }
  await writeInBatches(calls(), {
    mostCharacters: MOST_CHARACTERS,
    entryOf: ({ leaf: { id: leafId, node, answer, argumentOf }, place, id }) => {
      const entry = newRun({ id, leafId, node, answer, input: argumentOf(place) })
      return { entry, characters: entry.input.length }
    },
    write: (runs) => insertRuns(db, of, runs),
    refuse: ({ leaf }, error) => problems.set(leaf, errorText(error)),
  })
  return [...problems].map(([leaf, problem]) => ({ leaf, problem }))
}

/** Queues the run of an agent stage, unless an earlier owner has queued it. Returns the problem if it cannot begin. */
export async function startStageRun(
  db: Db,
  run: LeafRuns & { id: string; leafId: string; node: AgentLeaf; input: unknown },
): Promise<string | null> {
  const { node, flowRunId, projectId, within, id, leafId, input } = run
  const agent = await usableAgent(db, projectId, node.agent)
  if (typeof agent === 'string') return (await knownRuns(db, [id])).has(id) ? null : agent
  try {
    await insertRuns(db, { flowRunId, projectId, within, agent }, [newRun({ id, leafId, node, answer: null, input })])
    return null
  } catch (error) {
    if (error instanceof NoRoom) return error.message
    throw error
  }
}

interface NewRun {
  id: string
  leafId: string
  input: string
  answer: string | null
  timeout: number | null
}

/** Throws if the input cannot be serialised. */
const newRun = (given: {
  id: string
  leafId: string
  node: AgentLeaf
  answer: FlowLeaf['answer']
  input: unknown
}): NewRun => ({
  id: given.id,
  leafId: given.leafId,
  input: JSON.stringify(given.input ?? null),
  answer: given.answer === null ? null : JSON.stringify(given.answer),
  timeout: given.node.timeout ?? null,
})

async function usableAgent(db: Db, projectId: string, name: string): Promise<Agent | string> {
  const agent = await findAgent(db, projectId, name)
  if (!agent) return `There is no agent called ${name}.${await guessAgent(db, projectId, name)}`
  return agent.enabled ? agent : `The agent ${agent.name} is disabled.`
}

type Agent = NonNullable<Awaited<ReturnType<typeof findAgent>>>

interface LeafRuns {
  flowRunId: string
  projectId: string
  within: LeafBounds | null
}

interface Insertion extends LeafRuns {
  agent: Agent
}

const NEW_RUNS = {
  id: 'u.id',
  project_id: '$2::uuid',
  agent_id: '$3::uuid',
  trigger: `jsonb_build_object('type', 'flow', 'flow_run_id', $5::uuid, 'task_id', u.task_id) || $11::jsonb`,
  input: 'u.input',
  max_steps: '$4::int',
  timeout: 'coalesce(u.timeout, $6)',
  flow_run_id: '$5',
  answer: 'u.answer',
  depth: '$12::int',
  chain_depth: '$13::int',
  rights: '$14::jsonb',
  payers: '$15::uuid[]',
}
const FROM_LISTS =
  'from unnest($1::uuid[], $7::text[], $8::jsonb[], $9::int[], $10::jsonb[]) as u (id, task_id, input, timeout, answer)'

const INSERT = `${insertRunsSql(NEW_RUNS, FROM_LISTS)} on conflict (id) do nothing`

/**
 * Inserts runs if the tree has room for them, and counts them on its uppermost flow run. A flow run that is not below
 * another has no such limit: its leaves are limited by its flow.
 */
const INSERT_COUNTED = `
  with tree as materialized (
    select runs_below from flow_runs where id = $16 for no key update
  ), room as materialized (
    select from tree where ${MOST_RUNS_BELOW} >= runs_below + (
      select count(*) from unnest($1::uuid[]) as g (id) where not exists (select from agent_runs r where r.id = g.id))
  ), added as (
    ${insertRunsSql(NEW_RUNS, `${FROM_LISTS} where exists (select from room)`)} on conflict (id) do nothing returning id
  ), counted as (
    update flow_runs set runs_below = runs_below + (select count(*) from added)
    where id = $16 and exists (select from added)
  )
  select exists (select from room) as has_room`

/** The tree has so many runs that this one does not begin. */
class NoRoom extends Error {
  constructor(tree: string) {
    super(
      `The flow runs below the flow run ${tree} may have ${MOST_RUNS_BELOW} runs of agents together, and they have them.`,
    )
  }
}

/** Inserts the runs that do not exist yet, and counts these alone. */
async function insertRuns(db: Db, of: Insertion, runs: readonly NewRun[]): Promise<void> {
  const { flowRunId, projectId, agent, within } = of
  const values = [
    runs.map((run) => run.id),
    projectId,
    agent.id,
    agent.max_steps,
    flowRunId,
    agent.default_timeout,
    runs.map((run) => run.leafId),
    runs.map((run) => run.input),
    runs.map((run) => run.timeout),
    runs.map((run) => run.answer),
    JSON.stringify(within?.eval_id === undefined ? {} : { eval_id: within.eval_id }),
    within?.depth ?? 0,
    within?.chain_depth ?? 0,
    JSON.stringify(within?.rights ?? {}),
    within?.payers ?? [],
  ]
  if (within?.tree === undefined) {
    await db.query(INSERT, values)
    return
  }
  const { rows } = await db.query<{ has_room: boolean }>(INSERT_COUNTED, [...values, within.tree])
  if (!rows[0]?.has_room) throw new NoRoom(within.tree)
}

async function knownRuns(db: Db, runIds: readonly string[]): Promise<Set<string>> {
  const { rows } = await db.query<{ id: string }>('select id from agent_runs where id = any($1::uuid[])', [runIds])
  return new Set(rows.map(({ id }) => id))
}

/** Finds the leaves that have runs. The owner that announced a leaf may have died before it queued all its runs. */
export async function readQueued(
  db: Db,
  flowRunId: string,
  leaves: readonly FlowLeaf[],
): Promise<{ inPart: Set<FlowLeaf>; whole: Set<FlowLeaf> }> {
  if (leaves.length === 0) return { inPart: new Set(), whole: new Set() }
  const runIds = new Map(leaves.map((leaf) => [leaf, runIdsOf(flowRunId, leaf)]))
  const known = await knownRuns(db, [...runIds.values()].flat())
  const isKnown = (id: string): boolean => known.has(id)
  return {
    inPart: new Set(leaves.filter((leaf) => runIds.get(leaf)?.some(isKnown))),
    whole: new Set(leaves.filter((leaf) => runIds.get(leaf)?.every(isKnown))),
  }
}

/** Leaves whose runs have all ended, with their outcomes. */
export async function settledAgents(
  db: Db,
  flowRunId: string,
  leaves: readonly FlowLeaf[],
): Promise<{ leaf: FlowLeaf; outcome: LeafOutcome }[]> {
  if (leaves.length === 0) return []
  const runIds = leaves.map((leaf) => runIdsOf(flowRunId, leaf))
  const outcomes = await readEnded(db, runIds.flat())
  return leaves.flatMap((leaf, place) => {
    const ids = runIds[place] ?? []
    const ended = ids.flatMap((id) => outcomes.get(id) ?? [])
    return ended.length === ids.length ? [{ leaf, outcome: joinedOutcome(leaf, ended) }] : []
  })
}

function joinedOutcome(leaf: FlowLeaf, runs: readonly ChildOutcome[]): LeafOutcome {
  const values: unknown[] = []
  for (const run of runs) {
    const outcome = outcomeOfRun(run)
    if (outcome.status === 'failed') return outcome
    values.push(outcome.value)
  }
  return { status: 'completed', value: leaf.isEach ? values : values[0] }
}

/** A longer summary is cut in the error of a leaf; the run has all of it. */
const MOST_SUMMARY = 16_384

/** The outcome of a leaf with this run. The error of a run that has paused gives the reason and keeps the summary. */
export function outcomeOfRun({ id, status, pauseReason, summary, errorMessage }: ChildOutcome): LeafOutcome {
  if (status === 'completed') return { status, value: summary ?? '' }
  if (status !== 'paused') return { status: 'failed', error: errorMessage ?? `The run ${id} is ${status}.` }
  const said = [errorMessage, summary && cut(summary)].filter((text) => text).join(' ')
  const paused = `The run ${id} is paused (${pauseReason ?? 'no reason given'})`
  return { status: 'failed', error: said === '' ? `${paused}.` : `${paused}: ${said}` }
}

const cut = (summary: string): string =>
  summary.length <= MOST_SUMMARY ? summary : `${summary.slice(0, MOST_SUMMARY).toWellFormed()} …`
